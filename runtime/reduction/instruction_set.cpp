#include "runtime/reduction/instruction_set.hpp"

namespace ringmaster {

namespace {

std::vector<instruction_set> find_supported() {
  std::vector<instruction_set> sets{instruction_set::baseline};
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) {
    sets.push_back(instruction_set::avx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512vl"))
      sets.push_back(instruction_set::avx512);
  }
#endif
  return sets;
}

} // namespace

std::string_view name_of(instruction_set set) {
  switch (set) {
    case instruction_set::baseline: return "baseline";
    case instruction_set::avx2: return "avx2";
    case instruction_set::avx512: return "avx512";
  }
  return "unknown";
}

const std::vector<instruction_set>& supported_instruction_sets() {
  static const auto sets = find_supported();
  return sets;
}

instruction_set best_instruction_set() {
  return supported_instruction_sets().back();
}

} // namespace ringmaster
