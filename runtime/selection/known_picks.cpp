#include "runtime/selection/known_picks.hpp"

#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>

namespace ringmaster {

template <class Answer, class Ask>
caf::expected<Answer> known_picks::look_up(answers<Answer>& known, known_answer<Answer> question, const Ask& ask) {
  auto found = std::find_if(known.begin(), known.end(), [&](auto& x) {
    return x.kind == question.kind && x.algorithm == question.algorithm && x.element_bytes == question.element_bytes
           && x.request == question.request;
  });
  if (found != known.end()) {
    known.splice(known.begin(), known, found);
    return found->answer;
  }
  auto answer = caf::expected<Answer>{ask()};
  if (!answer)
    return answer;
  question.answer = *answer;
  known.push_front(std::move(question));
  if (known.size() > picks_max)
    known.pop_back();
  ensure(known.size() <= picks_max, "the cache keeps its limit");
  return answer;
}

caf::expected<const algorithm*> known_picks::pick(proto::CollectiveKind kind, const plan_request& request,
                                                  uint64_t element_bytes, const cost_constants& constants) {
  ensure(element_bytes > 0, "elements have a size");
  return look_up(known_, {kind, {}, request, element_bytes, nullptr}, [&]() -> caf::expected<const algorithm*> {
    TRY(picked, select_algorithm(kind, request, element_bytes, constants));
    return picked->which;
  });
}

caf::expected<uint64_t> known_picks::chunk(proto::CollectiveKind kind, std::string_view algorithm,
                                           const plan_request& request, uint64_t element_bytes,
                                           const cost_constants& constants) {
  TRY(which, find_algorithm(kind, algorithm));
  if (!(*which)->is.in_chunks)
    return request.chunk;
  return look_up(chunks_, {kind, std::string{algorithm}, request, element_bytes, 0},
                 [&] { return chunk_for(**which, request, element_bytes, constants); });
}

} // namespace ringmaster
