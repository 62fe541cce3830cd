#include "tools/prove_options.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ringmaster {

namespace {

constexpr uint64_t world_size_max = 4096; ///< All schedules of a ring of so many ranks take 5 GB.
constexpr uint64_t list_max = 4096;       ///< Numbers in one option.

caf::error wrong(std::string_view option, std::string_view value, std::string_view allowed) {
  return make_error(errc::invalid_argument, fmt::format("{} is '{}', but must be {}", option, value, allowed));
}

std::optional<uint64_t> number_in(std::string_view text, uint64_t min, uint64_t max) {
  uint64_t value = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || ec != std::errc{} || end != text.data() + text.size() || value < min || value > max)
    return std::nullopt;
  return value;
}

/// "3", "1..64", "1..8,16,100".
caf::expected<std::vector<uint64_t>> parse_list(std::string_view option, std::string_view text, uint64_t min,
                                                uint64_t max) {
  auto refused = [&] {
    return wrong(option, text, fmt::format("numbers from {} to {}, at most {} of them, such as 3, 1..64 or 2,4,8..16",
                                           min, max, list_max));
  };
  std::vector<uint64_t> result;
  for (size_t begin = 0; begin <= text.size();) {
    auto end = std::min(text.find(',', begin), text.size());
    auto part = text.substr(begin, end - begin);
    auto dots = part.find("..");
    auto first = number_in(part.substr(0, dots), min, max);
    auto last = dots == part.npos ? first : number_in(part.substr(dots + 2), min, max);
    if (!first || !last || *first > *last || *last - *first >= list_max - result.size())
      return refused();
    for (auto x = *first; x <= *last; ++x)
      result.push_back(x);
    begin = end + 1;
  }
  return result;
}

caf::error set_value(prove_options& opts, std::string_view option, const std::string& value) {
  constexpr auto count_max = uint64_t{1} << 48;
  auto put_list = [&](std::vector<uint64_t>& target, uint64_t min, uint64_t max) -> caf::error {
    auto list = parse_list(option, value, min, max);
    if (!list)
      return std::move(list.error());
    target = std::move(*list);
    return caf::none;
  };
  auto put_number = [&](auto& target, uint64_t min, uint64_t max) -> caf::error {
    auto number = number_in(value, min, max);
    if (!number)
      return wrong(option, value, fmt::format("a number from {} to {}", min, max));
    target = static_cast<std::decay_t<decltype(target)>>(*number);
    return caf::none;
  };
  if (option == "--ranks")
    return put_list(opts.ranks, 1, world_size_max);
  if (option == "--count")
    return put_list(opts.counts, 0, count_max);
  if (option == "--root")
    return put_list(opts.roots, 0, world_size_max - 1);
  if (option == "--seed")
    return put_number(opts.seed, 0, UINT64_MAX);
  if (option == "--jobs")
    return put_number(opts.jobs, 1, 256);
  if (value.empty())
    return wrong(option, value, option == "--algorithm" ? "the name of an algorithm, or all" : "the name of a file");
  if (option == "--algorithm")
    opts.algorithm = value;
  else if (option == "--schedule")
    opts.schedule = value;
  else
    opts.write = value;
  return caf::none;
}

caf::error check(const prove_options& opts) {
  auto limits_cases = opts.kind || opts.algorithm != "all" || !opts.ranks.empty() || !opts.counts.empty()
                      || !opts.roots.empty() || !opts.write.empty();
  if (!opts.schedule.empty() && limits_cases)
    return make_error(errc::invalid_argument, "--schedule FILE says itself what it is: only --seed goes with it");
  if (!opts.write.empty()
      && (!opts.kind || opts.algorithm == "all" || opts.ranks.size() != 1 || opts.counts.size() != 1
          || opts.roots.size() > 1))
    return make_error(errc::invalid_argument,
                      "--write FILE writes one: it wants a KIND, --algorithm, --ranks and --count with one value each");
  return caf::none;
}

} // namespace

caf::expected<prove_options> parse_prove_options(std::span<const std::string> args) {
  constexpr std::string_view with_value[] = {"--algorithm", "--ranks",    "--count", "--root",
                                             "--seed",      "--schedule", "--write", "--jobs"};
  prove_options opts;
  for (size_t i = 0; i < args.size(); ++i) {
    std::string_view arg = args[i];
    if (arg == "--help" || arg == "-h") {
      opts.help = true;
      return opts;
    }
    auto option = arg.substr(0, arg.find('=')); // "--ranks 3" or "--ranks=3"
    if (std::find(std::begin(with_value), std::end(with_value), option) != std::end(with_value)) {
      auto inside = option.size() < arg.size();
      if (!inside && i + 1 == args.size())
        return make_error(errc::invalid_argument, fmt::format("{} needs a value; see ringmaster prove --help", option));
      auto value = inside ? std::string{arg.substr(option.size() + 1)} : args[++i];
      if (auto err = set_value(opts, option, value))
        return err;
    } else if (arg.starts_with("-")) {
      return make_error(errc::invalid_argument,
                        fmt::format("there is no option '{}'; see ringmaster prove --help", arg));
    } else if (opts.kind) {
      return make_error(errc::invalid_argument,
                        fmt::format("one kind at a time: '{}' and '{}' were given", name_of(*opts.kind), arg));
    } else {
      auto kind = parse_collective_kind(arg);
      if (!kind)
        return std::move(kind.error());
      opts.kind = *kind;
    }
  }
  if (auto err = check(opts))
    return err;
  return opts;
}

const std::string_view prove_usage = R"(ringmaster prove [KIND] [options]

Proves collective algorithms: walks the schedules of all ranks on symbols and says whether every output element holds
what it must, whether a rank may wait for ever, and whether a range is written while it may still be read. Compares
rounds, elements and messages with what the algorithm says that it costs. Without a KIND, all of them.

  KIND               all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all, gather, scatter, barrier,
                     send_recv
  --algorithm A      one algorithm, or all (the default)
  --ranks LIST       world sizes, such as 4, 1..64 or 2,4,8..16; without it 1 to 64 and samples up to 1024
  --count LIST       elements, also without; without it several, even and uneven, fewer than ranks and more
  --root LIST        roots; without it all in small worlds, and samples
  --seed N           of the order of events (1)
  --jobs N           threads (2)
  --schedule FILE    prove the schedules in FILE; docs/schedule_format.md has the format
  --write FILE       write the schedules of one algorithm to FILE, in that format, and prove nothing
  --help             this text

Ends with status 0 if all proofs hold, 1 if one does not, 2 if the command line is wrong.
)";

} // namespace ringmaster
