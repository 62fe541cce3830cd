#pragma once

#include "runtime/selection/selection.hpp"

#include <list>
#include <string>
#include <string_view>

namespace ringmaster {

/// What `select_algorithm` and `chunk_for` said lately. Where ranks lie on several hosts they plan all of them by every
/// algorithm, which is too much for each call of many that are alike. Of one communicator, whose constants stay as they
/// are.
class known_picks {
public:
  /// Errors: as of `select_algorithm`.
  caf::expected<const algorithm*> pick(proto::CollectiveKind kind, const plan_request& request, uint64_t element_bytes,
                                       const cost_constants& constants);
  /// Errors: as of `find_algorithm` and `chunk_for`.
  caf::expected<uint64_t> chunk(proto::CollectiveKind kind, std::string_view algorithm, const plan_request& request,
                                uint64_t element_bytes, const cost_constants& constants);
  /// The ranks are others now.
  void forget() {
    known_.clear();
    chunks_.clear();
  }

private:
  static constexpr size_t picks_max = 64;

  template <class Answer>
  struct known_answer {
    proto::CollectiveKind kind;
    std::string algorithm; ///< Empty where it is the answer.
    plan_request request;
    uint64_t element_bytes;
    Answer answer;
  };
  template <class Answer>
  using answers = std::list<known_answer<Answer>>; ///< The latest first.

  /// What is known, or what `ask` says, which is kept.
  template <class Answer, class Ask>
  static caf::expected<Answer> look_up(answers<Answer>& known, known_answer<Answer> question, const Ask& ask);

  answers<const algorithm*> known_;
  answers<uint64_t> chunks_;
};

} // namespace ringmaster
