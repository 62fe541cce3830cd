#pragma once

#include "runtime/training/transformer/gpt.hpp"

namespace ringmaster::test {

inline const training::gpt small_gpt{"small", 256, 4, 8, 128, 1000};

} // namespace ringmaster::test
