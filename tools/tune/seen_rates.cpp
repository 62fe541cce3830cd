#include "tools/tune/seen_rates.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

double seen_rates::largest_share(size_t feature) const {
  ensure(feature < fit_.coefficients.size(), "the fit has the feature");
  double result = 0;
  for (auto& x : observations_)
    if (auto whole = predict(fit_.coefficients, x.features); whole > 0)
      result = std::max(result, fit_.coefficients[feature] * x.features[feature] / whole);
  return result;
}

caf::error seen_rates::check(const char* of, size_t feature) const {
  if (observations_.empty() || has(feature))
    return caf::none;
  return make_error(
    errc::aborted,
    fmt::format("the bandwidth of {} cannot be determined: bytes take at most {:.1f} % of the time of any "
                "sample; use a larger --max-bytes, or more --repeats and --samples on an idle machine",
                of, 100 * largest_share(feature)));
}

} // namespace ringmaster
