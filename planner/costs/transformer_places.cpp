#include "planner/costs/transformer_places.hpp"

#include "runtime/invariants/ensure.hpp"

namespace ringmaster::training {

namespace {

/// Of whole layers, more than there are where they do not divide.
uint32_t whole_places(const language_model& trained, const training_setting& how) {
  return how.chunk_layers(trained.layers) * how.chunks_of_stage() * how.pp;
}

} // namespace

transformer_places::transformer_places(const language_model& trained, const training_setting& how, bool network_apart)
  : trained_(trained), how_(how), parts_(network_apart ? 2 : 1), whole_(whole_places(trained, how)),
    before_(whole_ != trained.layers ? 1 : 0) {
  ensure(whole_ >= trained.layers, "each layer has a place");
}

rank_parameters transformer_places::parameters(uint32_t place) const {
  rank_parameters result;
  if (is_layer(place)) {
    const auto layer = layer_parameters(trained_, how_, kind_of(place));
    result += {has_attention(place) ? layer.dense : 0, has_network(place) ? layer.experts : 0};
  }
  if (is_first(place))
    result += {table_parameters(trained_, how_), 0};
  if (has_output(place))
    result += output_parameters(trained_, how_);
  return result;
}

} // namespace ringmaster::training
