#include "runtime/logging/log.hpp"

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <chrono>
#include <mutex>

namespace ringmaster {

namespace {

thread_local log_subject subject_here;

std::mutex node_guard;
std::string& node_here() {
  static auto* name = new std::string; // lines are written while statics are destroyed
  return *name;
}

std::string rfc3339(spdlog::log_clock::time_point time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(ms / 1000)), ms % 1000);
}

class json_formatter : public spdlog::formatter {
public:
  explicit json_formatter(std::string cluster) : cluster_(std::move(cluster)) {}

  void format(const spdlog::details::log_msg& line, spdlog::memory_buf_t& out) override {
    const auto& about = log_about::current();
    nlohmann::ordered_json object;
    object["time"] = rfc3339(line.time);
    object["level"] = std::string_view{spdlog::level::to_string_view(line.level).data(),
                                       spdlog::level::to_string_view(line.level).size()};
    object["message"] = std::string_view{line.payload.data(), line.payload.size()};
    object["cluster"] = cluster_;
    auto node = std::string{about.node};
    if (node.empty()) {
      std::scoped_lock lock{node_guard};
      node = node_here();
    }
    if (!node.empty())
      object["node"] = node;
    if (about.device != 0)
      object["device"] = fmt::format("0x{:x}", about.device);
    if (about.communicator != 0)
      object["communicator"] = about.communicator;
    if (about.operation != 0)
      object["operation"] = about.operation;
    // Names come from users and peers: what is not UTF-8 is replaced.
    const auto text = object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    out.append(text.data(), text.data() + text.size());
  }

  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<json_formatter>(cluster_); }

private:
  std::string cluster_;
};

} // namespace

log_about::log_about(const log_subject& subject) : outer_(std::exchange(subject_here, subject)) {
  // nop
}

log_about::~log_about() {
  subject_here = outer_;
}

const log_subject& log_about::current() {
  return subject_here;
}

void start_log(const options& opts) {
  constexpr auto name = "ringmaster";
  auto logger = spdlog::get(name);
  if (!logger)
    logger = spdlog::stderr_color_mt(name);
  if (opts.log.format == "json")
    logger->set_formatter(json_log_formatter(opts.node.join));
  else
    logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  logger->set_level(spdlog::level::from_str(opts.log.level == "warn" ? "warning" : opts.log.level));
  spdlog::set_default_logger(std::move(logger));
}

void set_log_node(const std::string& name) {
  std::scoped_lock lock{node_guard};
  node_here() = name;
}

std::unique_ptr<spdlog::formatter> json_log_formatter(std::string cluster) {
  return std::make_unique<json_formatter>(std::move(cluster));
}

} // namespace ringmaster
