#pragma once

#include "planner/plans/plan_search.hpp"

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

// What else could be asked, where there is no plan or a poor one.

namespace ringmaster::training {

/// The least number of devices on which a plan fits: the first power of two, or the first count between the one before
/// and it; above 512 those counts are tried that are multiples of a 512th of it. 0: none up to 65,536. Nothing:
/// `watch`, as above, ended the search before any was found.
std::optional<uint32_t> least_devices(const plan_question& asked, const std::function<bool(double)>& watch = {});

/// The numbers of devices, and of samples, nearest to those asked for with which anything divides: at most four each,
/// ascending. And what of the filter is in the way by itself: "tensor", "schedule", ...
struct near_questions {
  std::vector<uint32_t> devices, batches;
  std::vector<std::string_view> filters;
};
near_questions near_questions_that_divide(const plan_question& asked);

/// Fewer devices that take less time for the same batch, by closed forms, where they divide what there is better.
struct fewer_devices {
  uint32_t devices = 0; ///< 0: there are none among those that were tried.
  double seconds = 0;   ///< Of an iteration.
};
/// Tries a power of two, and three times one, from half of what was asked for, if that is none of them itself and the
/// search is no long one. `seconds`: of the best of `found`, as it is known now. `watch`: as of a search.
fewer_devices faster_on_fewer(const plan_question& asked, const transformer_plans& found, double seconds,
                              const std::function<bool(double)>& watch = {});

/// Another global batch that trains more samples a second, by closed forms, as it divides what there is better.
struct near_batch {
  uint32_t global_batch = 0; ///< 0: there is none among those that were tried.
  double seconds = 0;        ///< Of an iteration.
};
/// Tries the next below and above that are multiples of a power of two, or three times one where devices are, of some
/// tenth of the batch at most; if it is one itself, multiples of twice the largest power of two that divides it, as 512
/// and 1,024 are of 768. Not if the search is a long one. Else as `faster_on_fewer`.
near_batch faster_batch(const plan_question& asked, const transformer_plans& found, double seconds,
                        const std::function<bool(double)>& watch = {});

/// Closed forms take it that neighbours who talk much, of whom one domain has room for as many, share one.
struct domain_filling {
  uint32_t devices = 0;   ///< Of a domain, that such groups fill; 0: all of them, as its size divides.
  bool straddles = false; ///< They do not go into each other: some lie in two domains, whatever is left free.
};
domain_filling filling_of(const parallel_setting& how, const gpu_system& on);

} // namespace ringmaster::training
