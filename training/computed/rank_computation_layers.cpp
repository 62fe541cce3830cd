// A rank's operations on samples and layers, which call code that may throw.
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "training/computed/model_parts.hpp"
#include "training/computed/rank_computation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <limits>
#include <utility>

namespace ringmaster::training {

namespace {

/// The error that a call returns or throws, with `who` before its text.
template <class Call>
caf::error attempt(std::string_view who, Call call) {
  try {
    if (caf::error problem = call()) {
      const auto code = code_of(problem); // errc::ok: the error of a user's own data source
      return make_error(code == errc::ok ? errc::io_error : code, fmt::format("{}{}", who, render(problem)));
    }
    return caf::none;
  } catch (const std::exception& x) {
    return invalid(fmt::format("{}{}", who, x.what()));
  }
}

/// Looks at the exponents: all of their bits are set in infinities and NaNs. That takes next to no time.
template <class Float, class Bits>
bool are_finite(const std::byte* data, uint64_t elements) {
  constexpr auto exponent = std::bit_cast<Bits>(std::numeric_limits<Float>::infinity());
  auto* numbers = reinterpret_cast<const Float*>(data);
  Bits largest = 0;
  for (uint64_t i = 0; i < elements; ++i)
    largest = std::max<Bits>(largest, std::bit_cast<Bits>(numbers[i]) & exponent);
  return largest < exponent;
}

bool are_finite(precision as, const std::byte* data, uint64_t elements) {
  return as == precision::float32 ? are_finite<float, uint32_t>(data, elements)
                                  : are_finite<double, uint64_t>(data, elements);
}

constexpr std::string_view of_data = "data: ", of_layer; // a layer's error names the layer

} // namespace

caf::error rank_computation::input(pending& x) {
  TRY(room, room_for(x.results[0]));
  const auto samples = x.results[0].samples.first();
  const auto count = elements(job_, x.results[0]);
  if (auto problem = attempt(of_data, [&] {
        if (job_.as == precision::float32)
          return job_.data->fill(kept_.step(), samples, {reinterpret_cast<float*>((*room)->data), count}, {});
        std::vector<float> inputs(count);
        auto unread = job_.data->fill(kept_.step(), samples, inputs, {});
        set_numbers(job_.as, inputs, (*room)->data);
        return unread;
      }))
    return problem;
  x.memory[0] = store_.hold(std::move(*room));
  return caf::none;
}

pass rank_computation::pass_of(const pending& x) const {
  const auto &input = store_.at(x.memory[0]), &w = store_.at(x.memory[1]);
  ensure(input != nullptr && w != nullptr, "a pass has an input and weights");
  return {.as = job_.as,
          .samples = x.argument.samples.count(),
          .tensor = x.argument.tensor,
          .global_batch = job_.shape.global_batch,
          .weights = w->number,
          .keepsake = &input->keepsake};
}

caf::error rank_computation::forward(pending& x) {
  TRY(room, room_for(x.results[0]));
  if (auto problem = attempt(of_layer, [&] {
        job_.layers[x.argument.layer]->forward(pass_of(x), data(x, 0), data(x, 1), (*room)->data);
        return caf::none;
      }))
    return problem;
  auto made = bytes_of(x.results[0]);
  if (x.results[0].has == form::columns) {
    const auto filled = column_shards{job_, x.results[0], x.results[0].part.count}.bytes_filled(
      x.results[0].part.index);
    ensure(filled <= made, "a shard fits in its block");
    std::memset((*room)->data + filled, 0, std::exchange(made, filled) - filled);
  }
  if (strays_at_ == no_layer && !are_finite(job_.as, (*room)->data, made / training::bytes_of(job_.as)))
    strays_at_ = x.argument.layer;
  x.memory[0] = store_.hold(std::move(*room));
  return caf::none;
}

caf::error rank_computation::backward(pending& x) {
  const auto at = pass_of(x);
  const auto *input = data(x, 0), *w = data(x, 1), *by_output = data(x, 2);
  std::byte *by_weight = nullptr, *by_input = nullptr;
  for (size_t i = 0; i < x.results.size() && x.results[i].kind != value_kind::none; ++i) {
    TRY(room, room_for(x.results[i]));
    if (x.results[i].kind == value_kind::weight_gradient)
      by_weight = (*room)->data;
    else if (x.argument.layer != 0) // gradients by the samples themselves are not used
      by_input = (*room)->data;
    x.memory[i] = store_.hold(std::move(*room));
  }
  if (by_weight == nullptr && by_input == nullptr)
    return caf::none;
  return attempt(of_layer, [&] {
    job_.layers[x.argument.layer]->backward(at, input, w, by_output, by_weight, by_input);
    return caf::none;
  });
}

caf::error rank_computation::loss(pending& x) {
  if (x.argument.has != form::whole)
    return invalid("these losses are of whole samples");
  TRY(room, room_for(x.results[0]));
  const auto samples = x.argument.samples.first();
  std::vector<uint32_t> labels(samples.count() * job_.labels_each);
  if (auto problem = attempt(of_data, [&] { return job_.data->fill(kept_.step(), samples, {}, labels); }))
    return problem;
  losses_.add(softmax_loss(job_.as, job_.classes(), data(x, 0), labels, job_.shape.global_batch * job_.labels_each,
                           (*room)->data));
  x.memory[0] = store_.hold(std::move(*room));
  return caf::none;
}

} // namespace ringmaster::training
