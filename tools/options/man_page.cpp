#include "tools/options/man_page.hpp"

#include "messages/version.hpp"
#include "tools/options/version_date.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace ringmaster {

namespace {

/// As roff has it: no hyphen for a minus, no escapes, no requests.
std::string roff(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((text[i] == '.' || text[i] == '\'') && (i == 0 || text[i - 1] == '\n'))
      result += "\\&";
    if (text[i] == '\\')
      result += "\\e";
    else if (text[i] == '-')
      result += "\\-";
    else
      result += text[i];
  }
  return result;
}

std::string entry(const std::string& label, const std::string& purpose) {
  return fmt::format(".TP\n.B {}\n{}\n", roff(label), roff(purpose));
}

/// Of a line of a list, "  ring   from neighbour to neighbour": name and text, which blanks divide. Empty: it is none.
std::pair<std::string, std::string> list_entry(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const auto gap = line.find("  ");
  const auto text = gap == line.npos ? gap : line.find_first_not_of(' ', gap);
  if (text == line.npos)
    return {};
  return {std::string{line.substr(0, gap)}, std::string{line.substr(text)}};
}

/// Paragraphs, lists, and what else begins with a blank as it is.
std::string paragraphs(std::string_view text) {
  std::string result;
  auto as_it_is = false;
  auto switch_to = [&](bool other) {
    if (other != as_it_is)
      result += other ? ".nf\n" : ".fi\n";
    as_it_is = other;
  };
  for (auto begin = true; !text.empty();) {
    auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) {
      begin = true;
      continue;
    }
    auto [name, purpose] = list_entry(line.front() == ' ' ? line : std::string_view{});
    switch_to(line.front() == ' ' && name.empty());
    if (!name.empty()) {
      result += entry(name, purpose);
      begin = true;
      continue;
    }
    if (std::exchange(begin, false))
      result += ".PP\n";
    result += roff(line) + "\n";
  }
  switch_to(false);
  return result;
}

std::string forms_of(const option_table& table) {
  std::string text;
  for (auto& form : table.forms())
    text += fmt::format("{}.B {}\n{}\n", text.empty() ? "" : ".br\n", roff(table.command()), roff(form));
  return text;
}

std::string options_of(const option_table& table) {
  std::string text;
  if (table.free() && !table.free()->purpose().empty())
    text += entry(table.free()->label(), table.free()->purpose());
  for (auto& each : table.groups()) {
    if (!each.title.empty())
      text += paragraphs(each.title);
    for (auto& x : each.options)
      text += entry(x.label(), x.purpose());
  }
  if (table.takes_configuration())
    text += entry("--section.key=V", "any key of the configuration");
  return text;
}

std::string examples_of(const option_table& table) {
  std::string text;
  for (auto& x : table.examples())
    text += entry(x.line, x.purpose);
  return text;
}

void add_command(std::string& text, const tool_command& x) {
  auto table = x.table();
  text += fmt::format(".SS {}\n{}{}{}{}", roff(x.full_name()), forms_of(table), paragraphs(table.about()),
                      options_of(table), paragraphs(table.closing()))
          + examples_of(table);
  for (auto& inner : x.below)
    add_command(text, inner);
}

std::string head_of(std::string name, const std::string& summary) {
  auto title = name;
  std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
  return fmt::format(".TH {} 1 \"{}\" \"Ringmaster {}\" \"Ringmaster\"\n.SH NAME\n{} \\- {}\n", roff(title),
                     version_date, ringmaster_version, roff(name), roff(summary));
}

} // namespace

std::string man_page(const program& of) {
  auto text = head_of(of.name(), of.about())
              + fmt::format(".SH SYNOPSIS\n.B {0}\nCOMMAND [options]\n.br\n.B {0} help\n[COMMAND]\n.br\n.B {0}\n"
                            "\\-\\-version\n.SH COMMANDS\n",
                            roff(of.name()));
  for (auto& x : of.commands())
    text += entry(x.name, x.summary);
  for (auto& x : of.own_commands())
    text += entry(x.name, x.summary);
  text += paragraphs(of.closing()) + ".SH THE COMMANDS' OPTIONS\n";
  for (auto& x : of.commands())
    add_command(text, x);
  text += ".SH EXIT STATUS\n" + entry("0", "all is well")
          + entry("1", "what was asked for failed, or a result is wrong")
          + entry("2", "the command line or the configuration says what cannot be");
  return text;
}

std::string man_page(const tool_command& of) {
  auto table = of.table();
  auto text = head_of(of.name, of.summary) + ".SH SYNOPSIS\n" + forms_of(table) + ".SH DESCRIPTION\n"
              + paragraphs(table.about()) + ".SH OPTIONS\n" + options_of(table) + ".SH NOTES\n"
              + paragraphs(table.closing());
  return table.examples().empty() ? text : text + ".SH EXAMPLES\n" + examples_of(table);
}

} // namespace ringmaster
