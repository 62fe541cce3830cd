#pragma once

#include "training/layouts/tensor_layout.hpp"

#include <string>

namespace ringmaster {

/// A grid and a table, shortened for many ranks.
std::string text_of(const training::tensor_layout& layout);

/// One JSON object with every rank.
std::string json_of(const training::tensor_layout& layout);

} // namespace ringmaster
