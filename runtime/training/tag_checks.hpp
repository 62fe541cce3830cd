#pragma once

#include "runtime/training/rank.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <string>

/// What a rank's operations look at in the tags of their arguments, and say of those that are wrong. An empty sentence:
/// nothing is.
namespace ringmaster::training::detail {

/// The first sentence counts.
std::string first_of(std::initializer_list<std::string> problems);

/// `problem` makes the sentence; most operations are right and need none.
template <class Problem>
std::string unless(bool holds, Problem problem) {
  return holds ? std::string{} : problem();
}

std::string is_whole(const value_tag& x);
std::string not_for(const activation& x, const weight& w);
/// Why the other is not of the same part of the model, and at the same step: what would be.
std::string misfit(const value_tag& base, const value_tag& other);
std::string no_shard(shard x);

/// What is made of x's part of the samples.
inline void set_part(value_tag& made, const value_tag& x) {
  made.has = x.has;
  made.part = x.part;
}

/// What a tensor shard of a layer makes of x is a summand; what a rank's experts make is of their positions.
inline void add_up(value_tag& made, const value_tag& x, const weight& w) {
  if (w.tag().has == form::experts) {
    set_part(made, x);
    return;
  }
  if (w.tag().tensor.whole())
    return;
  made.has = form::summand;
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
  if (w.tag().has == form::experts)
    made.has = form::experts;
  else if (replicated && !made.tensor.whole())
    made.has = form::summand;
}

/// An operation's argument, by which costs go: a layer, samples, a tensor shard.
inline void set_about(value_tag& argument, const activation& x, const weight& w) {
  argument = x.tag();
  argument.tensor = w.tag().tensor;
}

} // namespace ringmaster::training::detail
