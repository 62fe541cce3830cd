#include "training/language/tag_checks.hpp"

namespace ringmaster::training::detail {

std::string not_whole(const value_tag& x) {
  return fmt::format("it needs the whole, and has the {}", text_of(x));
}

std::string not_for(const activation& x, const weight& w) {
  return fmt::format("the {} is not for the {}", text_of(x.tag()), text_of(w.tag()));
}

std::string not_by_output(const value_tag& w, const value_tag& by_output) {
  if (w.has != form::columns)
    return not_whole(by_output);
  return fmt::format("the {} is not by the columns that the {} makes", training::text_of(by_output),
                     training::text_of(w));
}

namespace {

std::string text_of(shard x) {
  return x.whole() ? "the whole" : fmt::format("shard {} of {}", x.index, x.count);
}

} // namespace

std::string misfit(const value_tag& base, const value_tag& other) {
  if (other.layer != base.layer)
    return fmt::format("it must be of layer {}", base.layer);
  if (other.step != base.step)
    return fmt::format("it is of step {} and must be of step {}", other.step, base.step);
  if (other.part != base.part)
    return fmt::format("it is {} and must be {}: gather, scatter or slice one of them", text_of(other.part),
                       text_of(base.part));
  if (other.run != base.run)
    return fmt::format("it is by {} and must be by {}: sum it over the ranks that share them",
                       text_of(other.positions()), text_of(base.positions()));
  if (other.tensor != base.tensor)
    return fmt::format("of what tensor-parallel ranks share it is {} and must be {}", text_of(other.tensor),
                       text_of(base.tensor));
  if ((other.has == form::experts) != (base.has == form::experts))
    return "one of them is of experts";
  if ((other.has == form::columns) != (base.has == form::columns))
    return "one of them is of columns of the layer's output";
  return other.has == form::summand ? "it is to be summed over the tensor-parallel ranks first"
                                    : "it has been summed over the tensor-parallel ranks";
}

shard sequence_shard(shard x, shard part) {
  const auto count = uint64_t{x.count} * part.count;
  if (count > position_run::of_max)
    return {0, 0};
  return {x.index * part.count + part.index, static_cast<uint32_t>(count)};
}

bool is_of_positions(const value_tag& x) {
  return x.has == form::sequence ? x.part.count <= position_run::of_max : x.has == form::whole && x.part.whole();
}

std::string of_other_columns(const value_tag& x, const value_tag& other) {
  return fmt::format("the {} and the {} are of other tensor shards of the layer", text_of(other), text_of(x));
}

std::string no_shard(shard x) {
  return fmt::format("there is no shard {} of {}", x.index, x.count);
}

} // namespace ringmaster::training::detail
