#pragma once

#include "training/language/executor.hpp"

#include <ringmaster/strategy/rank.hpp>

#include <fmt/format.h>

#include <string>

/// What a rank's operations check in the tags of their arguments: predicates, and the text for each that does not hold.
/// A text is only made for a predicate that is false.
namespace ringmaster::training::detail {

/// Of a weight, and of a gradient by one, column shards are no parts.
inline bool whole(const value_tag& x) {
  return x.part.whole() && (x.has == form::whole || (x.has == form::columns && !of_activation(x.kind)));
}
std::string not_whole(const value_tag& x);
/// Whether both are of the same layer and step.
inline bool is_for(const activation& x, const weight& w) {
  return x.layer() == w.layer() && x.tag().step == w.tag().step;
}
std::string not_for(const activation& x, const weight& w);
/// For a gradient that is not by all of the output that the weight makes.
std::string not_by_output(const value_tag& w, const value_tag& by_output);
/// Whether both are of the same part of the model, and at the same step.
inline bool same_part(const value_tag& a, const value_tag& b) {
  return a.layer == b.layer && a.step == b.step && a.part == b.part && a.run == b.run && a.tensor == b.tensor
         && a.has == b.has;
}
/// For two that are not: the difference, and what would fit.
std::string misfit(const value_tag& base, const value_tag& other);
inline bool is_shard(shard x) {
  return x.index < x.count;
}
std::string no_shard(shard x);
/// Shard `part` of x's positions, of all of which x has a part; count 0: they would be more than there may be.
shard sequence_shard(shard x, shard part);
/// Whether x is all positions, or of a part of them that there may be.
bool is_of_positions(const value_tag& x);
/// Whether both were made with the same columns of the layer.
inline bool same_columns(const value_tag& x, const value_tag& other) {
  return x.tensor == other.tensor;
}
std::string of_other_columns(const value_tag& x, const value_tag& other);

/// What a layer makes is of x's part of the samples: for what a tensor shard makes, a summand of that.
inline void add_up(value_tag& made, const value_tag& x, const weight& w) {
  made.has = x.has;
  made.part = x.part;
  made.run = x.run;
  if (w.tag().tensor.whole() || w.tag().has == form::experts)
    return;
  made.has = form::summand;
  made.tensor = w.tag().tensor;
}

/// The same of its output, of which a weight that is of columns makes these.
inline void set_output(value_tag& made, const value_tag& x, const weight& w) {
  if (w.tag().has != form::columns)
    return add_up(made, x, w);
  made.has = form::columns;
  made.part = w.tag().tensor;
}

/// Of a gradient by something of x's layer, for x's samples.
inline void set_gradient(value_tag& made, value_kind kind, const activation& x, const weight& w, bool replicated) {
  made.kind = kind;
  made.step = x.tag().step;
  made.layer = x.layer();
  made.samples = x.tag().samples;
  if (kind != value_kind::weight_gradient) {
    add_up(made, x.tag(), w);
    return;
  }
  made.tensor = w.tag().tensor;
  if (x.tag().has != form::whole)
    made.set_positions(positions_of(x.tag()));
  if (w.tag().has == form::experts || w.tag().has == form::columns)
    made.has = w.tag().has;
  else if (replicated && !made.tensor.whole())
    made.has = form::summand;
}

/// An operation's argument, by which costs go: a layer, samples, a tensor shard.
inline void set_about(value_tag& argument, const activation& x, const weight& w) {
  argument = x.tag();
  argument.tensor = w.tag().tensor;
}

} // namespace ringmaster::training::detail
