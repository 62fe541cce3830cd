#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace ringmaster {

/// One line on a terminal that says how far something is, and about how long it will take:
///
///   prove: 34 % done, about 12 s left
///   train: 34 % done, about 12 s left, loss 0.4321
///
/// Elsewhere, and in the first second, it says nothing. What else is written to the terminal meanwhile goes through
/// `print`, so that the line does not stand in its way. One thread at a time.
class progress {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using clock = std::function<time_point()>;

  /// To standard error, where that is a terminal.
  explicit progress(std::string what);
  /// For tests: to `err` in any case, at the clock's times.
  progress(std::string what, std::FILE* err, clock now);
  /// The line is gone.
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  /// So much of the whole is done, from 0 to 1. `more`: what else there is to say of it. May be called often.
  void at(double part, std::string_view more = {});
  /// So much was done before; what is left is reckoned from the rest.
  void begin_at(double part) { begun_at_ = part; }
  /// Writes to `out` in the line's place.
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
