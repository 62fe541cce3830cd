#include "training/pictures/stage_ranks.hpp"

#include "runtime/invariants/ensure.hpp"

namespace ringmaster {

using namespace training;

training_outcome first_of_stages(const training_outcome& found, const mesh& shape) {
  const auto size = shape.stage_size();
  ensure(size > 0 && found.ranks.size() % size == 0, "ranks are whole stages");
  training_outcome result = found;
  result.ranks.clear();
  result.events.clear();
  for (uint32_t rank = 0; rank < found.ranks.size(); rank += size)
    result.ranks.push_back(found.ranks[rank]);
  result.peak_rank = found.peak_rank / size;
  for (auto x : found.events)
    if (x.rank % size == 0) {
      x.rank /= size;
      x.peer /= size;
      result.events.push_back(x);
    }
  return result;
}

} // namespace ringmaster
