#include "tools/bench_options.hpp"

#include "messages/errc.hpp"
#include "runtime/reduction.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>

namespace ringmaster {

const char* const bench_help =
  R"(usage: ringmaster bench [KIND] [options]

Runs a collective (all_reduce) over a range of sizes on simulated devices in this process, checks the results, and
prints nccl-tests' columns. The size is what a rank contributes in all, as nccl-tests has it. The last column is the
part of the memory's limit that is reached: what a plain loop on all cores takes that reads all inputs and writes all
outputs once, divided by the time.

  --algorithm A        ring, direct, ... ; auto (the default) takes the best; all tries every one
  --devices N          2 to 1024 (8)
  --min-bytes B        such as 8, 64K, 1M (8)
  --max-bytes B        (64M)
  --factor F           from size to size (8)
  --datatype T         (float32)
  --op O               (sum)
  --root R             (0)
  --chunk B            pieces of pipelined algorithms; 0: as the algorithm likes (0)
  --iterations K       operations in a sample, enqueued back to back; 0: by size (0)
  --samples S          whose median, p50 and p99 are shown (20)
  --in-place           one buffer a rank
  --single             each operation is called and waited for by itself
  --no-memory-limit    leave out the plain loop that shows what the memory can do
  --json FILE          one object a row, too
  --section.key=V      any key of config/caf-application.conf

The exit status is 0 if every result was right.
)";

namespace {

caf::error wrong(const std::string& option, const std::string& value, const std::string& allowed) {
  return make_error(errc::invalid_argument, fmt::format("{} is \"{}\", but must be {}", option, value, allowed));
}

template <class T>
caf::error set_number(T& target, const std::string& option, const std::string& text, uint64_t min, uint64_t max) {
  uint64_t value = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || value < min || value > max)
    return wrong(option, text, fmt::format("an integer from {} to {}", min, max));
  target = static_cast<T>(value);
  return caf::none;
}

template <class T>
caf::error set(T& target, caf::expected<T> value) {
  if (!value)
    return std::move(value.error());
  target = *value;
  return caf::none;
}

caf::error apply(bench_options& x, const std::string& option, const std::string& value) {
  if (option == "--algorithm")
    return x.algorithm = value, caf::none;
  if (option == "--json")
    return x.json = value, caf::none;
  if (option == "--devices")
    return set_number(x.devices, option, value, 2, 1024);
  if (option == "--factor")
    return set_number(x.factor, option, value, 2, 1024);
  if (option == "--root")
    return set_number(x.root, option, value, 0, 1023);
  if (option == "--iterations")
    return set_number(x.iterations, option, value, 0, 1'000'000);
  if (option == "--samples")
    return set_number(x.samples, option, value, 1, 10'000);
  if (option == "--min-bytes")
    return set(x.min_bytes, parse_bytes(option, value));
  if (option == "--max-bytes")
    return set(x.max_bytes, parse_bytes(option, value));
  if (option == "--chunk")
    return set(x.chunk_bytes, parse_bytes(option, value));
  if (option == "--datatype")
    return set(x.datatype, parse_datatype(value));
  if (option == "--op")
    return set(x.op, parse_reduce_op(value));
  return make_error(errc::invalid_argument, fmt::format("there is no option {}; see ringmaster bench --help", option));
}

bool apply_flag(bench_options& x, const std::string& option) {
  if (option == "--in-place")
    x.in_place = true;
  else if (option == "--single")
    x.single = true;
  else if (option == "--no-memory-limit")
    x.memory_limit = false;
  else
    return false;
  return true;
}

} // namespace

caf::expected<uint64_t> parse_bytes(const std::string& option, const std::string& text) {
  char* end = nullptr;
  auto value = std::strtod(text.c_str(), &end);
  std::string unit = end;
  for (auto suffix : {"iB", "B", "ib", "b"})
    if (unit.size() >= std::string{suffix}.size() && unit.ends_with(suffix)) {
      unit.resize(unit.size() - std::string{suffix}.size());
      break;
    }
  auto power = unit.empty() ? 0 : unit == "K" || unit == "k" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : unit == "T" ? 40 : -1;
  auto bytes = std::ldexp(value, power < 0 ? 0 : power);
  if (end == text.c_str() || power < 0 || !(bytes >= 0) || bytes > std::ldexp(1.0, 50) || bytes != std::floor(bytes))
    return wrong(option, text, "a number of bytes, such as 4096, 64K, 1M or 1.5G");
  return static_cast<uint64_t>(bytes);
}

caf::expected<bench_options> parse_bench_options(const std::vector<std::string>& args) {
  bench_options result;
  for (size_t i = 0; i < args.size(); ++i) {
    auto equals = args[i].find('=');
    auto option = args[i].substr(0, equals);
    if (option.rfind("--", 0) != 0) {
      if (auto problem = set(result.kind, parse_collective_kind(args[i])))
        return problem;
      continue;
    }
    if (apply_flag(result, args[i]))
      continue;
    if (equals == std::string::npos && i + 1 == args.size())
      return make_error(errc::invalid_argument, fmt::format("{} needs a value; see ringmaster bench --help", option));
    if (auto problem = apply(result, option, equals != std::string::npos ? args[i].substr(equals + 1) : args[++i]))
      return problem;
  }
  if (result.min_bytes > result.max_bytes)
    return make_error(errc::invalid_argument, fmt::format("--min-bytes {} is more than --max-bytes {}", result.min_bytes,
                                                          result.max_bytes));
  return result;
}

} // namespace ringmaster
