#include "runtime/logging/log.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/ostream_sink.h>

#include <memory>
#include <sstream>

using namespace ringmaster;

namespace {

/// Lines that a logger with the JSON formatter writes while `write` runs.
template <class F>
std::string lines_of(const std::string& cluster, F write) {
  std::ostringstream out;
  auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(out);
  auto logger = std::make_shared<spdlog::logger>("json_log_test", sink);
  logger->set_formatter(json_log_formatter(cluster));
  logger->set_level(spdlog::level::info);
  auto before = spdlog::default_logger();
  spdlog::set_default_logger(logger);
  write();
  spdlog::set_default_logger(before);
  return out.str();
}

} // namespace

TEST_CASE("a line of JSON has time, level, message, cluster, and what it is about") {
  const auto text = lines_of("10.0.0.1:7077", [] {
    log_warn({.node = "node-2", .device = 0x1f, .communicator = 7, .operation = 12}, "rank {} is late", 3);
  });
  REQUIRE(text.ends_with("\n"));
  const auto line = nlohmann::json::parse(text);
  CHECK(line.at("level") == "warning");
  CHECK(line.at("message") == "rank 3 is late");
  CHECK(line.at("cluster") == "10.0.0.1:7077");
  CHECK(line.at("node") == "node-2");
  CHECK(line.at("device") == "0x1f");
  CHECK(line.at("communicator") == 7);
  CHECK(line.at("operation") == 12);
  const auto time = line.at("time").get<std::string>();
  CHECK_MESSAGE((time.size() == 24 && time[10] == 'T' && time.back() == 'Z'), time);
}

TEST_CASE("a line about nothing has no such fields, and the subject of an inner line ends with it") {
  const auto text = lines_of("", [] {
    log_about outer{{.communicator = 4}};
    log_info({.device = 2}, "inner");
    spdlog::info("outer");
  });
  std::istringstream in{text};
  std::string first, second;
  std::getline(in, first);
  std::getline(in, second);
  CHECK_FALSE(nlohmann::json::parse(first).contains("communicator"));
  CHECK(nlohmann::json::parse(second).at("communicator") == 4);
  CHECK_FALSE(nlohmann::json::parse(second).contains("device"));
}

TEST_CASE("each line is one object, whatever the message contains") {
  const auto text = lines_of("", [] { spdlog::info("{}", "two\nlines, a \"quote\" and \xff"); });
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
  CHECK(nlohmann::json::parse(text).at("message") == "two\nlines, a \"quote\" and \xef\xbf\xbd");
}
