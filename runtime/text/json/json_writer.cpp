#include "runtime/text/json/json_writer.hpp"

#include "runtime/text/json/json_value.hpp"

#include <fmt/format.h>

#include <cassert>
#include <cmath>
#include <iterator>
#include <utility>

namespace ringmaster {

json_writer& json_writer::object() {
  separate();
  text_ += '{';
  open_.push_back({'}'});
  return *this;
}

json_writer& json_writer::list() {
  separate();
  text_ += '[';
  open_.push_back({']'});
  return *this;
}

json_writer& json_writer::end() {
  assert(!open_.empty() && !named_);
  text_ += std::exchange(break_, {});
  text_ += open_.back().closing;
  open_.pop_back();
  return *this;
}

json_writer& json_writer::line(size_t indent) {
  break_.assign(1 + indent, ' ').front() = '\n';
  return *this;
}

json_writer& json_writer::key(std::string_view name) {
  assert(!open_.empty() && open_.back().closing == '}' && !named_);
  separate();
  text_ += json_text(name);
  text_ += spaced_ ? ": " : ":";
  named_ = true;
  return *this;
}

json_writer& json_writer::value(std::string_view text) {
  return literal(json_text(text));
}

json_writer& json_writer::rounded(double x, int digits) {
  if (!std::isfinite(x))
    return null();
  separate();
  fmt::format_to(std::back_inserter(text_), "{:.{}g}", x, digits);
  return *this;
}

json_writer& json_writer::fixed(double x, int decimals) {
  if (!std::isfinite(x))
    return null();
  separate();
  fmt::format_to(std::back_inserter(text_), "{:.{}f}", x, decimals);
  return *this;
}

json_writer& json_writer::literal(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}

std::string json_writer::take() {
  assert(open_.empty());
  return std::exchange(text_, {});
}

/// What stands between the value before, if there is one, and the next name or value.
void json_writer::separate() {
  if (std::exchange(named_, false))
    return;
  if (!open_.empty() && !std::exchange(open_.back().empty, false))
    text_ += spaced_ && break_.empty() ? ", " : ",";
  text_ += break_;
  break_.clear();
}

} // namespace ringmaster
