#pragma once

#include "runtime/selection/selection.hpp"

#include <list>
#include <string>
#include <string_view>

namespace ringmaster {

/// A cache of the results of `select_algorithm` and `chunk_for` for one communicator, whose constants do not change.
/// For ranks on several hosts they plan all ranks by every algorithm, which is too slow for each of many similar calls.
class known_picks {
public:
  /// Errors: those of `select_algorithm`.
  caf::expected<const algorithm*> pick(proto::CollectiveKind kind, const plan_request& request, uint64_t element_bytes,
                                       const cost_constants& constants);
  /// Errors: those of `find_algorithm` and `chunk_for`.
  caf::expected<uint64_t> chunk(proto::CollectiveKind kind, std::string_view algorithm, const plan_request& request,
                                uint64_t element_bytes, const cost_constants& constants);
  /// For a communicator whose ranks have changed.
  void forget() {
    known_.clear();
    chunks_.clear();
  }

private:
  static constexpr size_t picks_max = 64;

  template <class Answer>
  struct known_answer {
    proto::CollectiveKind kind;
    std::string algorithm; ///< Empty if it is the answer.
    plan_request request;
    uint64_t element_bytes;
    Answer answer;
  };
  template <class Answer>
  using answers = std::list<known_answer<Answer>>; ///< The latest first.

  /// The cached answer, or that of `ask`, which is added.
  template <class Answer, class Ask>
  static caf::expected<Answer> look_up(answers<Answer>& known, known_answer<Answer> question, const Ask& ask);

  answers<const algorithm*> known_;
  answers<uint64_t> chunks_;
};

} // namespace ringmaster
