#include "runtime/launchers/slurm_hosts.hpp"

#include "messages/errc.hpp"
#include "runtime/text/quantity_parse.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

namespace {

constexpr size_t digits_max = 9;

caf::error no_list(std::string_view text, const char* kind, const std::string& why) {
  return invalid(fmt::format("\"{}\" is no SLURM {}: {}", text, kind, why));
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.size() <= digits_max
         && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// "3" or "08-10", each number with as many digits as the first. Empty if it is neither.
std::vector<std::string> numbers_of(std::string_view range) {
  auto dash = range.find('-');
  auto first = range.substr(0, dash), last = dash == std::string_view::npos ? first : range.substr(dash + 1);
  if (!is_digits(first) || !is_digits(last))
    return {};
  auto from = *parse_whole(first, 0), to = *parse_whole(last, 0);
  std::vector<std::string> result;
  for (auto i = from; i <= to && result.size() <= slurm_hosts_max; ++i)
    result.push_back(fmt::format("{:0{}}", i, first.size()));
  return result;
}

/// Up to the next comma outside of brackets.
std::string_view first_of_list(std::string_view text) {
  bool within = false;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == ',' && !within)
      return text.substr(0, i);
    else if (text[i] == '[' || text[i] == ']')
      within = text[i] == '[';
  return text;
}

std::string too_many_hosts() {
  return fmt::format("it names more than {} hosts", slurm_hosts_max);
}

/// Expands one entry: each prefix with each number of the bracket, then the same with the rest. Returns what is wrong,
/// or an empty text.
std::string expand(std::string_view entry, std::vector<std::string>& hosts) {
  hosts = {""};
  while (!entry.empty()) {
    auto open = std::min(entry.find('['), entry.size());
    if (entry.substr(0, open).find(']') != std::string_view::npos)
      return "a ']' without its '['";
    for (auto& host : hosts)
      host += entry.substr(0, open);
    entry.remove_prefix(open);
    if (entry.empty())
      break;
    auto close = entry.find(']');
    if (close == std::string_view::npos)
      return "a '[' without its ']'";
    std::vector<std::string> longer;
    auto ranges = entry.substr(1, close - 1);
    entry.remove_prefix(close + 1);
    for (;;) {
      auto range = ranges.substr(0, ranges.find(','));
      auto numbers = numbers_of(range);
      if (numbers.empty())
        return fmt::format("'{}' is neither a number nor a range of rising numbers", range);
      if (hosts.size() * numbers.size() > slurm_hosts_max - longer.size())
        return too_many_hosts();
      for (auto& host : hosts)
        for (auto& number : numbers)
          longer.push_back(host + number);
      if (range.size() == ranges.size())
        break;
      ranges.remove_prefix(range.size() + 1);
    }
    hosts = std::move(longer);
  }
  return {};
}

} // namespace

caf::expected<std::vector<std::string>> slurm_hosts(std::string_view text) {
  constexpr auto kind = "list of hosts";
  std::vector<std::string> result, hosts;
  for (auto rest = text;;) {
    auto entry = first_of_list(rest);
    if (entry.empty())
      return no_list(text, kind, "a name is empty");
    if (auto wrong = expand(entry, hosts); !wrong.empty())
      return no_list(text, kind, wrong);
    result.insert(result.end(), hosts.begin(), hosts.end());
    if (result.size() > slurm_hosts_max)
      return no_list(text, kind, too_many_hosts());
    if (entry.size() == rest.size())
      return result;
    rest.remove_prefix(entry.size() + 1);
  }
}

caf::expected<std::vector<uint32_t>> slurm_tasks(std::string_view text) {
  constexpr auto kind = "list of tasks";
  std::vector<uint32_t> result;
  for (auto rest = text;;) {
    auto entry = rest.substr(0, rest.find(','));
    auto times = entry.find("(x");
    auto tasks = entry.substr(0, times);
    std::string_view count = "1";
    if (times != std::string_view::npos && entry.back() == ')')
      count = entry.substr(times + 2, entry.size() - times - 3);
    else if (times != std::string_view::npos)
      count = "";
    auto repeated = is_digits(count) ? *parse_whole(count, 0) : 0;
    if (!is_digits(tasks) || repeated == 0)
      return no_list(text, kind, fmt::format("'{}' is neither TASKS nor TASKS(xHOSTS)", entry));
    if (repeated > slurm_hosts_max - result.size())
      return no_list(text, kind, fmt::format("it is for more than {} hosts", slurm_hosts_max));
    result.insert(result.end(), repeated, static_cast<uint32_t>(*parse_whole(tasks, 0)));
    if (entry.size() == rest.size())
      return result;
    rest.remove_prefix(entry.size() + 1);
  }
}

} // namespace ringmaster
