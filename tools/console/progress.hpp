#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace ringmaster {

/// A status line on a terminal with the progress and the estimated time left:
///
///   prove: 34 % done, about 12 s left
///   train: 34 % done, about 12 s left, loss 0.4321
/// Elsewhere, and in the first second, nothing is shown. Other output must use `print`, which replaces the line. For
/// one thread at a time.
class progress {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using clock = std::function<time_point()>;

  /// On standard error, if that is a terminal.
  explicit progress(std::string what);
  /// For tests: always on `err`, with the times of `now`.
  progress(std::string what, std::FILE* err, clock now);
  /// Removes the line.
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  /// Sets the part that is done, from 0 to 1. `more`: added to the line. May be called often.
  void at(double part, std::string_view more = {});
  /// Sets the part that was done before the start, for the estimate.
  void begin_at(double part) { begun_at_ = part; }
  /// Removes the line and writes to `out`.
  void print(std::FILE* out, std::string_view text);

private:
  void clear();

  std::string what_;
  std::FILE* err_; ///< Null: nothing is shown.
  clock now_;
  time_point start_, next_;
  double begun_at_ = 0;
  bool shown_ = false;
};

} // namespace ringmaster
