#pragma once

#include <prometheus/metric_family.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster::gateway {

/// Durations by size, for a histogram of Prometheus.
class duration_histogram {
public:
  /// Upper bounds in seconds; one more bucket has all that is longer.
  static constexpr std::array<double, 19> bounds{1e-5,   2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2,
                                                 2.5e-2, 5e-2,   0.1,  0.25, 0.5,    1,    2.5,  5,      10};

  void add(double seconds);
  prometheus::ClientMetric::Histogram metric() const;

private:
  std::array<uint64_t, bounds.size() + 1> counts_{};
  double sum_ = 0;
};

/// Collects the families of metrics of one answer. Names follow Prometheus' conventions: the unit last, in base units,
/// and `_total` for what only grows.
class metric_page {
public:
  using labels = std::vector<std::pair<std::string, std::string>>;

  /// Starts a family; what is added next belongs to it.
  metric_page& counter(const std::string& name, const std::string& help);
  metric_page& gauge(const std::string& name, const std::string& help);
  metric_page& histogram(const std::string& name, const std::string& help);

  metric_page& add(double value, const labels& of = {});
  metric_page& add(uint64_t value, const labels& of = {}) { return add(static_cast<double>(value), of); }
  metric_page& add(const duration_histogram& value, const labels& of = {});

  /// In Prometheus' text format 0.0.4. Families without metrics are left out.
  std::string text() const;

private:
  metric_page& family(const std::string& name, const std::string& help, prometheus::MetricType type);

  std::vector<prometheus::MetricFamily> families_;
};

} // namespace ringmaster::gateway
