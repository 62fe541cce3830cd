#include "diagnosis/findings/call_match.hpp"

#include <algorithm>

namespace ringmaster::diagnosis {

bool may_be_uneven(std::string_view name) {
  auto has = [name](std::string_view part) { return name.find(part) != name.npos; };
  if (has("all_to_all") || has("alltoall") || has("_v") || has("coalesced"))
    return true;
  if (has("scatter") && !has("reduce_scatter"))
    return true;
  return has("gather") && !has("all_gather") && !has("allgather") && !has("_gather_base");
}

std::optional<fault_kind> mismatch_of(const job_records& job, const rank_call& a, const rank_call& b) {
  if (a.name != b.name)
    return fault_kind::other_collective;
  if (a.shape != b.shape) {
    auto &x = job.shapes[a.shape], &y = job.shapes[b.shape];
    const bool known = x.input_sizes != 0 && y.input_sizes != 0;
    if (known && !may_be_uneven(job.texts.text(a.name))
        && (x.input_elements != y.input_elements || x.output_elements != y.output_elements))
      return fault_kind::other_size;
    if (x.input_types != y.input_types && x.input_types != 0 && y.input_types != 0)
      return fault_kind::other_datatype;
  }
  if (a.root != b.root && a.root != rank_call::no_root && b.root != rank_call::no_root)
    return fault_kind::other_root;
  return {};
}

std::vector<std::vector<size_t>> matching_sets(const job_records& job, std::span<const rank_call* const> calls) {
  std::vector<std::vector<size_t>> sets;
  for (size_t i = 0; i < calls.size(); ++i) {
    auto fits = [&](auto& set) { return !mismatch_of(job, *calls[set.front()], *calls[i]); };
    auto at = std::ranges::find_if(sets, fits);
    if (at == sets.end())
      at = sets.insert(at, std::vector<size_t>{});
    at->push_back(i);
  }
  std::ranges::stable_sort(sets, std::greater{}, &std::vector<size_t>::size);
  return sets;
}

} // namespace ringmaster::diagnosis
