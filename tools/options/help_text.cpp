#include "tools/options/help_text.hpp"

#include "runtime/text/pages/wrapped_text.hpp"
#include "tools/console/page_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ringmaster {

namespace {

// Of the options' column. help2man takes a text for the purpose of the option above from column 20 on.
constexpr size_t width_min = 16, width_max = 22;

size_t help_columns() {
  return page_format::of_console(false).columns;
}

/// One paragraph or line: words up to the width. Starts at `column`.
void fill_line(std::string& text, std::string_view words, size_t indent, size_t column) {
  text += wrapped_text(words, help_columns(), indent, column) + '\n';
}

bool is_shown(const option& x, const option_table& table, help_extent extent) {
  return extent == help_extent::all || !table.has_common() || x.is_common();
}

size_t width_of(const option_table& table, help_extent extent) {
  size_t result = width_min;
  auto take = [&](const option& x) {
    if (auto width = x.label().size(); width <= width_max && is_shown(x, table, extent))
      result = std::max(result, width);
  };
  if (table.free())
    take(*table.free());
  for (auto& each : table.groups())
    std::for_each(each.options.begin(), each.options.end(), take);
  return result;
}

std::string usage_of(const option_table& table, const std::vector<tool_command>& below) {
  std::string text;
  for (auto& form : table.forms())
    text += fmt::format("{} {}{}{}\n", text.empty() ? "Usage:" : "  or: ", table.command(), form.empty() ? "" : " ",
                        form);
  for (auto& x : below)
    text += fmt::format("  or:  {} [options]\n", x.full_name());
  return text;
}

std::string options_of(const option_table& table, help_extent extent) {
  const auto width = width_of(table, extent);
  std::string text;
  if (table.free() && !table.free()->purpose().empty())
    text += listed(table.free()->label(), table.free()->purpose(), width);
  for (auto& each : table.groups()) {
    auto title = extent == help_extent::all && !each.title.empty() ? "\n" + filled(each.title) : "";
    for (auto& x : each.options)
      if (is_shown(x, table, extent))
        text += std::exchange(title, "") + listed(x.label(), x.purpose(), width);
  }
  if (extent == help_extent::all && table.takes_configuration())
    text += listed("--section.key=V", "any key of the configuration, such as --device.count=4", width);
  text += listed("-h, --help", "shows the options that are used most", width);
  if (extent == help_extent::all)
    text += listed("--help-all", "shows all options", width) + listed("--version", "shows the versions", width);
  return text;
}

/// A line of a list, "  ring   from neighbour to neighbour". A text that is too long is continued below itself.
std::string list_line(std::string_view line) {
  const auto name = std::min(line.find_first_not_of(' '), line.size());
  const auto gap = line.find("  ", name);
  const auto column = line.find_first_not_of(' ', gap);
  if (line.size() <= help_columns() || column == line.npos)
    return fmt::format("{}\n", line);
  std::string text{line.substr(0, column)};
  fill_line(text, line.substr(column), column, column);
  return text;
}

/// A command line, broken with backslashes where it is too long.
std::string command_line(std::string_view line) {
  constexpr std::string_view indent = "  ", deeper = "      ", goes_on = " \\\n";
  std::string text{indent};
  for (auto width = help_columns() - indent.size(); line.size() > width; width = help_columns() - deeper.size()) {
    const auto end = line.rfind(' ', width - 2);
    if (end == line.npos)
      break;
    text.append(line.substr(0, end)).append(goes_on).append(deeper);
    line.remove_prefix(end + 1);
  }
  return text.append(line).append("\n");
}

/// The purposes are in a column of their own where all lines fit, else each is below its command line.
std::string examples_of(const option_table& table) {
  size_t line = 0, purpose = 0;
  for (auto& x : table.examples()) {
    line = std::max(line, x.line.size());
    purpose = std::max(purpose, x.purpose.size());
  }
  std::string text = table.examples().empty() ? "" : "\nExamples:\n";
  for (auto& x : table.examples())
    if (2 + line + 3 + purpose <= help_columns()) {
      text += fmt::format("  {:<{}}   {}\n", x.line, line, x.purpose);
    } else {
      text.append(command_line(x.line)).append("      ");
      fill_line(text, x.purpose, 6, 6);
    }
  return text;
}

} // namespace

std::string filled(std::string_view text) {
  std::string result, paragraph;
  auto end_paragraph = [&] {
    if (!paragraph.empty())
      fill_line(result, paragraph, 0, 0);
    paragraph.clear();
  };
  while (!text.empty()) {
    auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.front() != ' ') {
      paragraph.append(paragraph.empty() ? "" : " ").append(line);
      continue;
    }
    end_paragraph();
    result.append(list_line(line));
  }
  end_paragraph();
  return result;
}

std::string listed(std::string_view name, std::string_view purpose, size_t width) {
  auto text = fmt::format("  {:<{}}", name, width);
  if (name.size() > width)
    text += '\n' + std::string(width + 2, ' ');
  text += "  ";
  fill_line(text, purpose, width + 4, width + 4);
  while (text.ends_with(" \n"))
    text.erase(text.size() - 2, 1);
  return text;
}

size_t width_of(const std::vector<tool_command>& commands) {
  size_t result = 0;
  for (auto& x : commands)
    result = std::max(result, x.name.size());
  return result;
}

std::string help_text(const option_table& table, const std::vector<tool_command>& below, help_extent extent) {
  auto text = usage_of(table, below);
  if (!table.about().empty())
    text.append("\n").append(filled(table.about()));
  if (extent == help_extent::all && !table.closing().empty())
    text.append("\n").append(filled(table.closing()));
  if (!below.empty()) {
    text += "\nCommands:\n";
    for (auto& x : below)
      text += listed(x.name, x.summary, std::max(width_of(below), width_min));
  }
  text += "\nOptions:\n" + options_of(table, extent) + examples_of(table);
  return extent == help_extent::all ? text : text + "\n" + filled(table.command() + " --help-all shows all options.");
}

} // namespace ringmaster
