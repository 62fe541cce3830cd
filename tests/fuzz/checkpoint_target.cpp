// A checkpoint: a safetensors file, maybe of another program.
#include "runtime/invariants/ensure.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "training/checkpoints/safetensors.hpp"

namespace ringmaster::fuzz {

namespace {

void read_checkpoint(std::string_view bytes) {
  const memory_file file{bytes};
  const auto read = training::safetensors_file::read(file.path());
  if (!read)
    return;
  uint64_t touched = 0;
  for (const auto& tensor : read->tensors()) {
    ensure(read->find(tensor.name) == &tensor, "a tensor is found by its name");
    for (const auto x : tensor.bytes)
      touched += std::to_integer<uint64_t>(x);
  }
  ensure(touched <= 255 * bytes.size(), "tensors lie within the file");
}

const fuzz_target fuzz_checkpoint{"checkpoint", read_checkpoint};

} // namespace

} // namespace ringmaster::fuzz
