#include "tools/options/commands.hpp"

#include "actors/configuration/settings.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/schedule/request_of.hpp"
#include "runtime/selection/written_algorithm.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/bench/bench.hpp"
#include "tools/bench/bench_options.hpp"
#include "tools/bench/bench_report.hpp"
#include "tools/bench/memory_limit.hpp"
#include "tools/clients/cluster_connection.hpp"
#include "tools/clients/free_devices.hpp"
#include "tools/console/own_memory.hpp"
#include "tools/options/configured_call.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>

namespace ringmaster {

namespace {

constexpr uint64_t limit_bytes_min = 1u << 20; ///< Smaller operations do not depend on memory.

caf::error unwritten(const bench_options& x) {
  return make_error(errc::io_error, fmt::format("cannot write the rows '{}': {}", x.json, std::strerror(errno)));
}

caf::expected<memory_limit> limit_of(const bench_options& x, const bench_row& row) {
  auto floats = std::max<uint64_t>(row.count * size_of(x.datatype) / sizeof(float), 1);
  auto request = request_of(collective_of(x, floats), x.devices, 0);
  return measure_memory_limit({x.kind, request, x.in_place}, std::max(x.samples / 2, 3u), row.operations);
}

/// Prints the rows of a group, writes them to the file of --json, and sums them up.
class bench_rows {
public:
  /// `json`: a file, or null.
  bench_rows(const bench_options& x, rank_layout layout, std::FILE* out, std::FILE* json)
    : options_(x), layout_(std::move(layout)), table_(x, page_format::of_console(x.wide)), out_(out), json_(json) {
    print(table_.head(layout_));
  }

  /// Writes the row at once, so that a full disk is reported early in a long measurement.
  caf::error add(const bench_row& row) {
    print(table_.row(row));
    wrong_ += row.wrong;
    bus_bandwidths_ += row.busbw;
    ++count_;
    if (json_ == nullptr)
      return caf::none;
    auto line = json_row(options_, row, layout_) + "\n";
    auto written = std::fwrite(line.data(), 1, line.size(), json_) == line.size() && std::fflush(json_) == 0;
    return written ? caf::error{} : unwritten(options_);
  }

  void remark(const std::string& text) const { print(table_.remark(text)); }
  const rank_layout& layout() const noexcept { return layout_; }
  bool right() const noexcept { return wrong_ == 0; }

  void print_end() const {
    remark(right() ? "every result was right" : fmt::format("WRONG: {}", counted(wrong_, "element")));
    remark(fmt::format("Avg bus bandwidth    : {:.2f}",
                       count_ == 0 ? 0 : bus_bandwidths_ / static_cast<double>(count_)));
  }

private:
  void print(const std::string& text) const {
    fmt::print(out_, "{}", text);
    std::fflush(out_);
  }

  const bench_options& options_;
  rank_layout layout_;
  bench_table table_;
  std::FILE *out_, *json_;
  uint64_t wrong_ = 0, count_ = 0;
  double bus_bandwidths_ = 0;
};

caf::error measure_rows(bench& group, const bench_options& x, bench_rows& rows) {
  for (auto bytes : sizes_of(x)) {
    memory_limit limit;
    for (auto& algorithm : algorithms_for(x)) {
      TRY(row, group.measure(algorithm, bytes));
      if (!x.no_memory_limit && limit.how.empty() && row->bytes * x.devices >= limit_bytes_min) {
        TRY(measured, limit_of(x, *row));
        limit = std::move(*measured);
      }
      row->limit_us = limit.time_us;
      RETURN_ERROR(rows.add(*row));
    }
    if (!limit.how.empty())
      rows.remark(fmt::format("limit: {:.2f} us, of a plain loop that reads all inputs and writes all outputs ({}); "
                              "parts above 1 are due to caches or other load",
                              limit.time_us, limit.how));
  }
  return caf::none;
}

/// Waits for the devices of this process.
caf::error wait_for_own(client& user, const bench_options& x) {
  auto there = user.devices(x.devices, std::chrono::seconds{60});
  return there ? caf::error{} : there.error();
}

class bench_call final : public configured_call {
  void declare_options(option_table& table) override {
    arguments_.add_to(table);
    join_options(table);
  }

  caf::error check() override {
    RETURN_ERROR(check_no_rank());
    if (is_given("device.count"))
      RETURN_ERROR(arguments_.take_device_count(cfg_.values().device.count));
    joined_ = !coordinator_elsewhere(cfg_.values()).empty();
    auto problem = take(joined_ ? arguments_.options(arguments_.fewest_devices()) : arguments_.options());
    if (!problem && joined_ && x_.written)
      return invalid("--schedule: the devices are in other processes, which do not know the file; without caf-run or "
                     "--join they are in this one");
    return problem || joined_ || !is_given("device.memory-bytes") ? problem : fit_to_memory();
  }

  caf::error fit_to_memory() {
    wanted_bytes_ = x_.max_bytes;
    const auto given = cfg_.values().device.memory_bytes;
    auto problem = fit_sizes(x_, given);
    return !problem ? problem : invalid(fmt::format("--device.memory-bytes={}: {}", given, render(problem)));
  }

  caf::error take(caf::expected<bench_options> x) {
    if (!x)
      return std::move(x.error());
    x_ = std::move(*x);
    x_.deterministic = x_.deterministic || cfg_.values().communicator.deterministic;
    return caf::none;
  }

  caf::expected<int> run(const console& to) override {
    if (x_.written)
      RETURN_ERROR(register_schedules(x_.algorithm, *x_.written));
    auto opts = cfg_.values();
    opts.device.count = x_.devices;
    if (!is_given("device.memory-bytes"))
      opts.device.memory_bytes = memory_for(x_);
    if (opts.log.level == "info")
      opts.log.level = "warn";
    std::FILE* json = nullptr;
    if (!x_.json.empty() && (json = std::fopen(x_.json.c_str(), "w")) == nullptr)
      return unwritten(x_);
    auto right = measure(opts, to, json);
    if (json != nullptr && std::fclose(json) != 0 && right)
      right = unwritten(x_);
    if (!right)
      return std::move(right.error());
    return *right ? exit_ok : exit_failed;
  }

  /// Fits the options to another cluster.
  caf::error fit_to_joined(client& user, caf::timespan patience, std::FILE* err) {
    TRY(there, await_free(user, "bench", x_.devices_given ? x_.devices : bench_arguments::devices_min, patience, err));
    wanted_bytes_ = x_.max_bytes;
    return take(fit_to_cluster(arguments_, *there));
  }

  /// Returns whether every result was right.
  caf::expected<bool> measure(const options& opts, const console& to, std::FILE* json) {
    caf::actor_system system{cfg_};
    TRY(home, open_cluster("ringmaster bench", system, opts, to.err));
    client user{system, (*home)->coordinator(), std::chrono::seconds{60}};
    RETURN_ERROR(joined_ ? fit_to_joined(user, opts.node.join_timeout, to.err) : wait_for_own(user, x_));
    if (x_.max_bytes < wanted_bytes_)
      fmt::print(to.out, "# up to {}: the devices' memory has no space for more\n", bytes_text(x_.max_bytes));
    bench group{user, x_};
    RETURN_ERROR(group.open());
    auto result = measure_on(user, group, node_settings(opts, {}).hostname, to, json);
    auto problem = group.close(); // also after an error: others may use the cluster
    if (result && problem)
      return problem;
    return result;
  }

  caf::expected<bool> measure_on(client& user, bench& group, const std::string& own_host, const console& to,
                                 std::FILE* json) {
    TRY(cluster, user.devices());
    bench_rows rows{x_, rank_layout{group.ranks(), *cluster}, to.out, json};
    if (!x_.no_memory_limit && !rows.layout().all_on(own_host)) {
      x_.no_memory_limit = true;
      rows.remark("the limit is omitted: not all ranks are on this host");
    }
    RETURN_ERROR(measure_rows(group, x_, rows));
    if (auto bytes = own_memory_bytes(); bytes > 0 && !joined_) // the devices are in this process
      rows.remark(fmt::format("memory beside the devices' files: {}, {} a device", bytes_text(bytes),
                              bytes_text(bytes / x_.devices)));
    rows.print_end();
    return rows.right();
  }

  bench_arguments arguments_;
  bench_options x_;
  bool joined_ = false;       ///< The devices are in other processes.
  uint64_t wanted_bytes_ = 0; ///< The largest size without the limit of the devices' memory.
};

} // namespace

tool_command bench_command() {
  return tool_command::of<bench_call>("bench", "measures collectives on this machine, in nccl-tests' columns");
}

} // namespace ringmaster
