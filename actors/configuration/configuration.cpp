#include "actors/configuration/configuration.hpp"

#include "actors/configuration/ini_keys.hpp"
#include "actors/hosts/connection_watch.hpp"
#include "actors/scheduling/awake_actor_clock.hpp"
#include "actors/scheduling/parking_policy.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "messages/type_ids.hpp"
#include "runtime/health/restart_intensity.hpp"
#include "runtime/text/utf8.hpp"
#include "runtime/text/version_text.hpp"

#include <caf/config_value.hpp>
#include <caf/deep_to_string.hpp>
#include <caf/policy/work_sharing.hpp>
#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <span>
#include <sstream>

namespace ringmaster {

namespace {

std::string to_std(caf::string_view x) {
  return {x.begin(), x.end()};
}

/// "device.count" of "--device.count=4", "help" of "--help", nothing of what is no long option.
std::string name_of_argument(const std::string& arg) {
  if (arg.size() <= 2 || arg.compare(0, 2, "--") != 0)
    return {};
  return arg.substr(2, arg.find('=') - 2);
}

caf::expected<std::string> read_text(const std::filesystem::path& file) {
  std::ifstream in{file};
  if (!in || std::filesystem::is_directory(file))
    return make_error(errc::io_error, fmt::format("the configuration file {} cannot be read", file.string()));
  std::string text{std::istreambuf_iterator<char>{in}, {}};
  if (const auto wrong = wide_encoding_problem(text))
    return make_error(errc::invalid_config, fmt::format("{}: {}", file.string(), render(wrong)));
  text.erase(0, byte_order_mark_bytes(text));
  for (auto at = text.find("\r\n"); at != std::string::npos; at = text.find("\r\n", at))
    text.erase(at, 1); // CAF's parser takes no line that ends so
  return text;
}

std::string variable(const char* name) {
  const auto* value = std::getenv(name);
  return value == nullptr ? std::string{} : std::string{value};
}

/// Options that a launcher gives to all that it starts, a line each in RINGMASTER_OPTIONS, before those of the command
/// line, which replace them.
std::vector<std::string> with_options_of_launcher(std::vector<std::string> args) {
  std::vector<std::string> result;
  std::istringstream lines{variable("RINGMASTER_OPTIONS")};
  for (std::string line; std::getline(lines, line);)
    if (const auto name = name_of_argument(line);
        !name.empty() && std::ranges::none_of(args, [&](auto& x) { return name_of_argument(x) == name; }))
      result.push_back(line);
  result.insert(result.end(), std::make_move_iterator(args.begin()), std::make_move_iterator(args.end()));
  return result;
}

/// The first lines of a text.
std::string first_lines(const std::string& text, int64_t count) {
  std::istringstream in{text};
  std::string result, line;
  for (int64_t i = 0; i < count && std::getline(in, line); ++i)
    result += line + "\n";
  return result;
}

/// CAF's keys for workers that look for work again and again, where ours sleep.
caf::error check_used(const std::string& key, const std::string& where) {
  if (!key.starts_with("work-stealing.moderate-") && !key.starts_with("work-stealing.relaxed-"))
    return caf::none;
  return make_error(errc::invalid_config,
                    fmt::format("{}: {} has no effect, for idle workers sleep until they are woken; "
                                "work-stealing.aggressive-poll-attempts says how long they look for work before",
                                where, key));
}

/// How CAF reads and writes a number of ours that may have a unit: a text as well as an integer.
template <option_entry::unit CountedIn>
struct counted_option {
  static caf::expected<uint64_t> read(const caf::config_value& x) {
    if (auto plain = caf::get_if<int64_t>(&x))
      return *plain >= 0 ? caf::expected<uint64_t>{static_cast<uint64_t>(*plain)}
                         : caf::expected<uint64_t>{caf::make_error(caf::pec::type_mismatch)};
    if (auto text = caf::get_if<std::string>(&x))
      return parse_counted(CountedIn, *text);
    return caf::make_error(caf::pec::type_mismatch);
  }

  static caf::error check(const caf::config_value& x) {
    auto value = read(x);
    return value ? caf::error{} : std::move(value.error());
  }
  static void store(void* target, const caf::config_value& x) { *static_cast<uint64_t*>(target) = *read(x); }
  static caf::config_value get(const void* target) {
    return caf::config_value{static_cast<int64_t>(*static_cast<const uint64_t*>(target))};
  }
  static caf::expected<caf::config_value> parse(void* target, caf::string_view text) {
    TRY(value, parse_counted(CountedIn, to_std(text)));
    if (target != nullptr)
      *static_cast<uint64_t*>(target) = *value;
    return caf::config_value{static_cast<int64_t>(*value)};
  }

  static inline caf::config_option::meta_state state{check, store, get, parse, "size"};
};

void add_counted(caf::config_option_set& all, const option_entry& entry, uint64_t& target) {
  auto* state = entry.counted_in == option_entry::unit::bytes
                  ? &counted_option<option_entry::unit::bytes>::state
                  : &counted_option<option_entry::unit::bytes_a_second>::state;
  all.add(caf::config_option{{entry.section.data(), entry.section.size()},
                             {entry.key.data(), entry.key.size()},
                             {entry.purpose.data(), entry.purpose.size()},
                             state,
                             &target});
}

/// protobuf has a line for each text that is not UTF-8, and peers send what they like.
void log_of_protobuf(google::protobuf::LogLevel level, const char*, int, const std::string& text) {
  static std::mutex guard;
  static rate_limiter lines{std::chrono::seconds{1}};
  std::scoped_lock lock{guard};
  if (level == google::protobuf::LOGLEVEL_FATAL)
    spdlog::critical("protobuf: {}", text);
  else if (auto times = lines.happened(std::chrono::steady_clock::now()); times > 0)
    spdlog::warn("a message cannot be read: {} ({} since the last report)", text, times);
}

} // namespace

void add_messages(caf::actor_system_config& cfg) {
  google::protobuf::SetLogHandler(log_of_protobuf);
  cfg.add_message_types<caf::id_block::ringmaster>();
}

configuration::configuration() {
  add_messages(*this);
  add_error_category(caf::atom("ringmaster"), [](uint8_t code, caf::atom_value category, const caf::message& x) {
    return ringmaster::render(caf::error{code, category, x});
  });
  load<watched_middleman>();
  for (const auto& entry : option_entries(values_)) {
    if (entry.counted_in != option_entry::unit::none) {
      add_counted(custom_options_, entry, *std::get<uint64_t*>(entry.value));
      continue;
    }
    auto in_section = [&](auto* value) {
      opt_group{custom_options_, {entry.section.data(), entry.section.size()}}.add(
        *value, {entry.key.data(), entry.key.size()}, {entry.purpose.data(), entry.purpose.size()});
    };
    std::visit(in_section, entry.value);
  }
  // A peer that hangs, or whose host is cut off, is given up after the timeout; CAF's default is never.
  set("middleman.heartbeat-interval", caf::timespan{std::chrono::milliseconds{500}});
  set("middleman.connection-timeout", caf::timespan{std::chrono::seconds{20}});
  // CAF lets an actor run for as long as it has messages; a stream always has one while it copies.
  set("scheduler.max-throughput", uint64_t{64});
}

trust_settings configuration::trust() const {
  return {.secret_file = values_.trust.secret_file,
          .tls = {values_.trust.certificate, values_.trust.key, values_.trust.authority},
          .bulk = values_.trust.bulk == "authenticated" ? protection::authenticated : protection::encrypted,
          .insecure = values_.trust.insecure,
          .journal_dir = values_.journal.dir,
          .lists_nodes = !values_.cluster.devices.empty(),
          .port_is_chosen = values_.coordinator.port == 0};
}

caf::error configuration::read(int argc, char** argv, const std::optional<std::filesystem::path>& default_file) {
  return read(std::vector<std::string>(argv + std::min(argc, 1), argv + argc), default_file);
}

caf::error configuration::read(std::vector<std::string> args,
                               const std::optional<std::filesystem::path>& default_file) {
  const std::string program = program_invocation_short_name;
  for (auto& arg : std::span{args.begin(), std::find(args.begin(), args.end(), "--")})
    if (arg == "--help" || arg == "-h" || arg == "--version") {
      fmt::print("{}", arg == "--version" ? version_text(program) : help_text(program, default_file));
      cli_helptext_printed = true;
      return caf::none;
    }
  args = with_options_of_launcher(std::move(args));
  // CAF takes options only in front of the first other argument.
  auto end = std::find(args.begin(), args.end(), "--");
  auto others = std::stable_partition(args.begin(), end, [&](const std::string& x) { return is_ours_or_cafs(x); });
  for (auto arg = args.begin(); arg != others; ++arg)
    RETURN_ERROR(check_argument(*arg));
  auto file = default_file;
  if (file && !std::filesystem::exists(*file))
    file.reset();
  if (const auto of_launcher = variable("RINGMASTER_CONF"); !of_launcher.empty())
    file = of_launcher;
  auto named = std::find_if(args.begin(), others, [](const auto& x) { return name_of_argument(x) == "config-file"; });
  if (named != others)
    file = named->substr(named->find('=') + 1);
  std::string text;
  if (file) {
    TRY(content_of_file, read_text(*file));
    text = std::move(*content_of_file);
    RETURN_ERROR(check_text(text, file->string()));
  }
  file_ = file;
  file_keys_ = ini_keys(text);
  for (auto arg = args.begin(); arg != others; ++arg)
    command_keys_.push_back(name_of_argument(*arg));
  std::vector<std::string> remaining(others, args.end());
  args.erase(others, args.end());
  // On the command line CAF takes no flag with a value, and no empty text: they are stored once more after its pass.
  auto refused = std::stable_partition(args.begin(), args.end(), [&](const std::string& x) {
    auto option = custom_options_.cli_long_name_lookup(name_of_argument(x));
    return option == nullptr || x.find('=') == std::string::npos || (!option->is_flag() && x.back() != '=');
  });
  std::vector<std::string> refused_by_caf(refused, args.end());
  args.erase(refused, args.end());
  std::istringstream in{text};
  if (auto err = parse(std::move(args), in))
    return make_error(errc::invalid_config, fmt::format("the configuration cannot be read: {}", render(err)));
  for (const auto& arg : refused_by_caf)
    RETURN_ERROR(check_argument(arg));
  remainder = std::move(remaining);
  if (const auto policy = caf::get_or(content, "scheduler.policy", caf::atom("stealing"));
      policy == caf::atom("stealing"))
    load<awake_coordinator<parking_policy>>();
  else if (policy == caf::atom("sharing"))
    load<awake_coordinator<caf::policy::work_sharing>>();
  return with_origin(validate(values_));
}

caf::error configuration::check(const std::optional<std::filesystem::path>& file) const {
  if (file) {
    TRY(text, read_text(*file));
    RETURN_ERROR(check_text(*text, file->string()));
  }
  return validate(values_);
}

caf::error configuration::check_remainder() const {
  if (remainder.empty())
    return caf::none;
  const auto& first = remainder[0];
  if (auto name = name_of_argument(first); name.find('.') != name.npos)
    return make_error(errc::invalid_config, fmt::format("{}: there is no key {}; {}", first, name, keys_like(name)));
  return invalid(fmt::format("\"{}\" is no option here; --help lists them", first));
}

std::string configuration::help_text(const std::string& program,
                                     const std::optional<std::filesystem::path>& default_file) const {
  auto text = fmt::format("usage: {} [--section.key=VALUE...]\n\n", program);
  options defaults;
  for (const auto& entry : option_entries(defaults))
    text += fmt::format("  --{:<38} {}\n", fmt::format("{}.{}={}", entry.section, entry.key, value_text(entry)),
                        entry.purpose);
  return text
         + fmt::format("  --{:<38} {}\n  --{:<38} {}\n  --{:<38} {}\n", "config-file=FILE",
                       fmt::format("the configuration, in place of {}",
                                   default_file ? default_file->string() : "none, since none is there"),
                       "version", "which versions these are", "help", "this text");
}

/// With the file, where that alone says the key that the error begins with.
caf::error configuration::with_origin(const caf::error& problem) const {
  const auto text = problem ? ringmaster::render(problem) : std::string{};
  const auto key = text.substr(0, text.find(' '));
  const auto has = [&](auto& keys) { return std::ranges::find(keys, key) != keys.end(); };
  if (!file_ || !has(file_keys_) || has(command_keys_))
    return problem;
  return make_error(code_of(problem), fmt::format("{}: {}", file_->string(), text));
}

std::string configuration::origin_of(const std::string& section) const {
  auto sets = [&](const std::vector<std::string>& keys) {
    return std::any_of(keys.begin(), keys.end(), [&](auto& x) { return x.starts_with(section + "."); });
  };
  std::string result = sets(file_keys_) ? file_->string() : "";
  if (sets(command_keys_))
    result += result.empty() ? "the command line" : " and the command line";
  return result.empty() ? "the defaults" : result;
}

caf::settings configuration::dump_content() const {
  auto result = actor_system_config::dump_content();
  auto copy = values_;
  for (const auto& entry : option_entries(copy)) {
    auto key = fmt::format("{}.{}", entry.section, entry.key);
    std::visit([&](const auto* value) { caf::put(result, key, *value); }, entry.value);
  }
  return result;
}

/// Whether CAF knows the option, or it is meant to be one: it has a section of ours or of CAF's, or a short name.
bool configuration::is_ours_or_cafs(const std::string& arg) const {
  auto name = name_of_argument(arg);
  if (name.empty())
    return arg == "-h" || arg == "-?";
  if (custom_options_.cli_long_name_lookup(name) != nullptr)
    return true;
  auto section = name.substr(0, name.find('.') + 1);
  return !section.empty() && std::any_of(custom_options_.begin(), custom_options_.end(), [&](const auto& option) {
    return to_std(option.category()) + "." == section;
  });
}

caf::error configuration::check_argument(const std::string& arg) {
  auto name = name_of_argument(arg);
  if (name.empty())
    return caf::none;
  auto option = custom_options_.cli_long_name_lookup(name);
  if (option == nullptr)
    return make_error(errc::invalid_config, fmt::format("{}: there is no key {}; {}", arg, name, keys_like(name)));
  RETURN_ERROR(check_used(name, arg));
  auto equals = arg.find('=');
  if (equals == std::string::npos && option->is_flag())
    return caf::none;
  // This stores the value, too, which CAF's own pass over the command line does again.
  auto value = equals == std::string::npos ? std::string{} : arg.substr(equals + 1);
  if (equals == std::string::npos || !option->parse(value))
    return make_error(errc::invalid_config, fmt::format("{}: {} is {}; it must be {}", arg, name,
                                                        value.empty() ? "empty" : value, allowed_for(*option)));
  return caf::none;
}

/// "line 2", from the error of CAF's parser, whose columns are not to be trusted. Of a line that ends too early it
/// names the next one, which the lines before it tell.
std::string configuration::place_of(const caf::error& err, const std::string& text) {
  const auto& context = err.context();
  if (!context.match_elements<caf::config_value::dictionary>())
    return "somewhere";
  auto number = caf::get_or(context.get_as<caf::config_value::dictionary>(0), "line", int64_t{0});
  std::istringstream before{first_lines(text, number - 1)};
  if (number > 1 && !parse_config(before))
    --number;
  return fmt::format("line {}", number);
}

caf::error configuration::check_text(const std::string& text, const std::string& name) const {
  std::istringstream in{text};
  auto parsed = parse_config(in);
  if (!parsed)
    return make_error(errc::invalid_config,
                      fmt::format("{}, {}: this is not understood; sections look like [name], keys like key=value, "
                                  "comments start with ; and texts stand in double quotes",
                                  name, place_of(parsed.error(), text)));
  std::set<std::string> seen;
  for (const auto& key : ini_keys(text)) {
    if (!seen.insert(key).second)
      return make_error(errc::invalid_config, fmt::format("{}: {} is there twice; once is right", name, key));
    RETURN_ERROR(check_value(key, caf::get_if(&*parsed, key), name));
  }
  return caf::none;
}

caf::error configuration::check_value(const std::string& key, const caf::config_value* value,
                                      const std::string& name) const {
  auto option = custom_options_.qualified_name_lookup(key);
  if (key.starts_with("global."))
    return make_error(errc::invalid_config, fmt::format("{}: {} stands outside of any section; {}", name,
                                                        key.substr(key.find('.') + 1), keys_like("")));
  if (option == nullptr)
    return make_error(errc::invalid_config, fmt::format("{}: there is no key {}; {}", name, key, keys_like(key)));
  RETURN_ERROR(check_used(key, name));
  if (value == nullptr || option->check(*value))
    return make_error(errc::invalid_config,
                      fmt::format("{}: {} is {}; it must be {}", name, key,
                                  value == nullptr ? "lost" : caf::deep_to_string(*value), allowed_for(*option)));
  return caf::none;
}

/// "section [device] has count, streams", or which sections there are.
std::string configuration::keys_like(const std::string& key) const {
  auto section = key.substr(0, key.find('.'));
  std::set<std::string> keys, sections;
  for (const auto& option : custom_options_) {
    if (option.category() == section)
      keys.insert(to_std(option.long_name()));
    sections.insert(to_std(option.category()));
  }
  if (!keys.empty())
    return fmt::format("section [{}] has {}", section, fmt::join(keys, ", "));
  sections.erase("global");
  return fmt::format("the sections are {}", fmt::join(sections, ", "));
}

std::string configuration::allowed_for(const caf::config_option& option) const {
  auto copy = values_;
  for (const auto& entry : option_entries(copy))
    if (option.full_name() == fmt::format("{}.{}", entry.section, entry.key))
      return allowed_text(entry);
  auto type = to_std(option.type_name());
  return type == "timespan" ? "a duration such as 500ms" : "of CAF's type " + type;
}

} // namespace ringmaster
