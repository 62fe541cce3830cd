#pragma once

#include "runtime/invariants/ensure.hpp"
#include "runtime/reduction/instruction_set.hpp"

namespace ringmaster {

/// `Loop::run` compiled once for each instruction set. It and what it calls must be always_inline: only then is it
/// compiled for its caller's. By hand rather than by target_clones, whose resolvers run before a sanitizer has set
/// itself up.
template <class Loop, class Function = decltype(&Loop::run)>
struct compiled;

template <class Loop, class... Args>
struct compiled<Loop, void (*)(Args...)> {
  static void baseline(Args... args) { Loop::run(args...); }

#ifdef __x86_64__
  [[gnu::target("avx2")]] static void avx2(Args... args) {
    Loop::run(args...);
  }
  [[gnu::target("avx512f,avx512dq,avx512bw,avx512vl")]] static void avx512(Args... args) {
    Loop::run(args...);
  }
#endif

  static auto at(instruction_set set) -> void (*)(Args...) {
#ifdef __x86_64__
    if (set == instruction_set::avx512)
      return avx512;
    if (set == instruction_set::avx2)
      return avx2;
#endif
    ensure(set == instruction_set::baseline, "kernels exist for the instruction set");
    return baseline;
  }
};

} // namespace ringmaster
