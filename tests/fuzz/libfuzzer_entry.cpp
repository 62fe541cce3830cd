// What libFuzzer calls, in a program with one target.
#include "runtime/invariants/ensure.hpp"
#include "tests/fuzz/fuzz_target.hpp"

#include <spdlog/spdlog.h>

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  ringmaster::ensure(ringmaster::fuzz::fuzz_target::all().size() == 1, "a program of libFuzzer has one target");
  spdlog::set_level(spdlog::level::off); // each input would have its warning
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  ringmaster::fuzz::fuzz_target::all().front()->run({reinterpret_cast<const char*>(data), bytes});
  return 0;
}
