#include "actors/configuration/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace ringmaster {

void start_log(const options& opts) {
  constexpr auto name = "ringmaster";
  auto logger = spdlog::get(name);
  if (!logger)
    logger = spdlog::stderr_color_mt(name);
  logger->set_pattern("%H:%M:%S.%e %^%l%$ %v");
  logger->set_level(spdlog::level::from_str(opts.log.level == "warn" ? "warning" : opts.log.level));
  spdlog::set_default_logger(std::move(logger));
}

} // namespace ringmaster
