// A model's configuration file (config.json), as `ringmaster plan` reads it.
#include "planner/models/model_file.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace ringmaster::fuzz {

namespace {

void read_model(std::string_view bytes) {
  (void)training::parse_model(bytes);
  (void)training::parse_model(bytes, {.sequence = 128, .family = "llama"});
}

const fuzz_target fuzz_model_file{"model_file", read_model};

} // namespace

} // namespace ringmaster::fuzz
