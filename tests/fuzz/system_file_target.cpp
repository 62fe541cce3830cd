// A file that describes GPUs and networks, as `ringmaster plan` reads it.
#include "planner/systems/gpu_system.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace ringmaster::fuzz {

namespace {

void read_system(std::string_view bytes) {
  (void)training::parse_system(bytes);
}

const fuzz_target fuzz_system_file{"system_file", read_system};

} // namespace

} // namespace ringmaster::fuzz
