#pragma once

#include "tests/support/training/layer_like.hpp"

namespace ringmaster::test {

/// A layer that needs two samples at once.
class sociable_layer : public layer_like {
public:
  using layer_like::layer_like;
  std::string name() const override { return "sociable " + layer_like::name(); }
  uint64_t samples_min() const override { return 2; }
};

} // namespace ringmaster::test
