#pragma once

#include "training/layouts/tensor_layout.hpp"

#include <string>

namespace ringmaster {

/// As a grid and a table, shortened where there are many ranks.
std::string text_of(const training::tensor_layout& layout);

/// One object, with every rank.
std::string json_of(const training::tensor_layout& layout);

} // namespace ringmaster
