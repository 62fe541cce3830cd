#pragma once

#include "tests/support/file_content.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/temporary_directory.hpp"
#include "training/checkpoints/safetensors.hpp"

#include <vector>

namespace ringmaster::test {

/// A tensor of floats, which must stay.
inline training::stored_tensor floats(const std::string& name, const std::vector<float>& values) {
  return {name, "F32", {values.size()}, std::as_bytes(std::span{values})};
}

} // namespace ringmaster::test
