#include "gateway/http/metrics/metric_page.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/text/utf8.hpp"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <limits>

namespace ringmaster::gateway {

void duration_histogram::add(double seconds) {
  const auto bucket = std::ranges::lower_bound(bounds, seconds) - bounds.begin();
  ++counts_[static_cast<size_t>(bucket)];
  sum_ += seconds;
}

prometheus::ClientMetric::Histogram duration_histogram::metric() const {
  prometheus::ClientMetric::Histogram result;
  uint64_t count = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    count += counts_[i];
    result.bucket.push_back({count, i < bounds.size() ? bounds[i] : std::numeric_limits<double>::infinity()});
  }
  result.sample_count = count;
  result.sample_sum = sum_;
  return result;
}

metric_page& metric_page::family(const std::string& name, const std::string& help, prometheus::MetricType type) {
  families_.push_back({name, help, type, {}});
  return *this;
}

metric_page& metric_page::counter(const std::string& name, const std::string& help) {
  ensure(name.ends_with("_total"), "the name of a counter ends with _total");
  return family(name, help, prometheus::MetricType::Counter);
}

metric_page& metric_page::gauge(const std::string& name, const std::string& help) {
  return family(name, help, prometheus::MetricType::Gauge);
}

metric_page& metric_page::histogram(const std::string& name, const std::string& help) {
  return family(name, help, prometheus::MetricType::Histogram);
}

namespace {

std::vector<prometheus::ClientMetric::Label> labels_of(const metric_page::labels& of) {
  std::vector<prometheus::ClientMetric::Label> result;
  for (auto& [name, value] : of)
    result.push_back({name, as_utf8(value)});
  return result;
}

} // namespace

metric_page& metric_page::add(double value, const labels& of) {
  ensure(!families_.empty(), "a metric belongs to a family");
  prometheus::ClientMetric metric;
  metric.label = labels_of(of);
  metric.counter.value = value;
  metric.gauge.value = value;
  families_.back().metric.push_back(std::move(metric));
  return *this;
}

metric_page& metric_page::add(const duration_histogram& value, const labels& of) {
  ensure(!families_.empty() && families_.back().type == prometheus::MetricType::Histogram,
         "durations belong to a histogram");
  prometheus::ClientMetric metric;
  metric.label = labels_of(of);
  metric.histogram = value.metric();
  families_.back().metric.push_back(std::move(metric));
  return *this;
}

std::string metric_page::text() const {
  std::vector<prometheus::MetricFamily> shown;
  std::ranges::copy_if(families_, std::back_inserter(shown), [](auto& x) { return !x.metric.empty(); });
  return prometheus::TextSerializer{}.Serialize(shown);
}

} // namespace ringmaster::gateway
