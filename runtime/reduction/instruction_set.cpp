#include "runtime/reduction/instruction_set.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace ringmaster {

namespace {

#ifdef __x86_64__
/// clang's __builtin_cpu_supports does not know this one.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

std::vector<instruction_set> find_supported() {
  std::vector<instruction_set> sets{instruction_set::baseline};
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && has_f16c()) {
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
