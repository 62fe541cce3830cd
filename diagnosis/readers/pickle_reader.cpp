// The data opcodes of Python's pickle protocols (PEP 307, PEP 3154); dumps of PyTorch have protocol 2.
#include "diagnosis/readers/dump_tree.hpp"
#include "messages/errc.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstring>

namespace ringmaster::diagnosis {

namespace {

/// What an opcode that is refused would do.
std::string_view forbidden(uint8_t opcode) {
  switch (opcode) {
    case 'c': return "GLOBAL";
    case 0x93: return "STACK_GLOBAL";
    case 'R': return "REDUCE";
    case 'i': return "INST";
    case 'o': return "OBJ";
    case 'b': return "BUILD";
    case 0x81: return "NEWOBJ";
    case 0x92: return "NEWOBJ_EX";
    case 'P': return "PERSID";
    case 'Q': return "BINPERSID";
    case 0x82: return "EXT1";
    case 0x83: return "EXT2";
    case 0x84: return "EXT4";
    case 0x97: return "NEXT_BUFFER";
    default: return {};
  }
}

class pickle_machine {
public:
  explicit pickle_machine(std::string_view bytes) : bytes_(bytes) {
    stack_.reserve(4096);
    memo_.reserve(1024);
    result_.tree.reserve(bytes.size());
  }

  caf::expected<parsed_dump> run();

private:
  using kind = dump_value::kind;

  caf::error at_opcode(std::string_view problem) const {
    return malformed(fmt::format("byte {}: {}", opcode_at_, problem));
  }
  bool has(uint64_t count) const { return bytes_.size() - at_ >= count; }
  template <class Integer>
  Integer take() { // little endian; the caller has checked `has`
    Integer x = 0;
    std::memcpy(&x, bytes_.data() + at_, sizeof x);
    at_ += sizeof x;
    return x;
  }
  bool step(uint8_t opcode);
  bool step_number(uint8_t opcode);
  bool step_text(uint8_t opcode);
  bool step_memo(uint8_t opcode);
  bool step_container(uint8_t opcode);
  bool step_other(uint8_t opcode);

  bool refuse(std::string_view problem) {
    error_ = at_opcode(problem);
    return false;
  }
  bool cut() { return refuse("the file ends within this opcode: it is cut off, or was still being written"); }
  bool push(dump_value x) {
    stack_.push_back(x);
    return true;
  }
  bool push_text(uint64_t length);
  bool push_long(uint64_t length);
  bool push_line(uint8_t opcode);
  bool make_tuple(size_t count);
  bool append_from(size_t first, kind expected);
  bool store(uint64_t slot);
  bool recall(uint64_t slot);
  /// The stack height at the latest mark, which is removed; none: there is no mark.
  std::optional<size_t> pop_mark();
  bool no_mark() { return refuse("this opcode needs a MARK before it, and there is none"); }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  bool lacks(size_t count) const { return stack_.size() - floor() < count; }
  bool too_few() { return refuse("this opcode needs more values than the pickle has put on its stack"); }
  /// A line of protocol 0, without its line feed.
  std::optional<std::string_view> take_line();

  std::string_view bytes_;
  size_t at_ = 0, opcode_at_ = 0;
  std::vector<dump_value> stack_, memo_;
  std::vector<size_t> marks_;
  parsed_dump result_;
  caf::error error_;
};

std::optional<size_t> pickle_machine::pop_mark() {
  if (marks_.empty())
    return {};
  auto first = marks_.back();
  marks_.pop_back();
  return first;
}

std::optional<std::string_view> pickle_machine::take_line() {
  auto end = bytes_.find('\n', at_);
  if (end == bytes_.npos)
    return {};
  auto line = bytes_.substr(at_, end - at_);
  at_ = end + 1;
  return line;
}

bool pickle_machine::push_text(uint64_t length) {
  if (!has(length))
    return refuse(fmt::format("a text of {} bytes, but the file has {} more: it is cut off", length,
                              bytes_.size() - at_));
  push(result_.tree.add_text(bytes_.substr(at_, length)));
  at_ += length;
  return true;
}

bool pickle_machine::push_long(uint64_t length) {
  if (!has(length))
    return cut();
  if (length > 9)
    return refuse(fmt::format("an integer of {} bytes; a dump has none of more than 8", length));
  uint64_t x = 0;
  for (uint64_t i = 0; i < std::min<uint64_t>(length, 8); ++i)
    x |= uint64_t{static_cast<uint8_t>(bytes_[at_ + i])} << (8 * i);
  if (length > 0 && length < 8 && (bytes_[at_ + length - 1] & 0x80) != 0)
    x |= ~uint64_t{0} << (8 * length);
  at_ += length;
  return push(dump_value::of(static_cast<int64_t>(x)));
}

bool pickle_machine::push_line(uint8_t opcode) {
  auto line = take_line();
  if (!line)
    return cut();
  auto text = *line;
  if (opcode == 'V')
    return push(result_.tree.add_text(text));
  if (opcode == 'S') {
    if (text.size() < 2 || text.front() != text.back())
      return refuse("a text of protocol 0 must be in quotes");
    return push(result_.tree.add_text(text.substr(1, text.size() - 2)));
  }
  if (opcode == 'L' && text.ends_with('L'))
    text.remove_suffix(1);
  if (opcode == 'I' && (text == "00" || text == "01"))
    return push(dump_value::of(text == "01"));
  if (opcode == 'F') {
    double x = 0;
    auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), x);
    return problem == std::errc{} && end == text.data() + text.size() ? push(dump_value::of(x))
                                                                      : refuse("this is not a number");
  }
  int64_t x = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), x);
  return problem == std::errc{} && end == text.data() + text.size() ? push(dump_value::of(x))
                                                                    : refuse("this is not an integer of 64 bits");
}

bool pickle_machine::make_tuple(size_t count) {
  if (lacks(count))
    return too_few();
  auto tuple = result_.tree.add_container(kind::list);
  result_.tree.append(tuple, std::span{stack_}.last(count));
  stack_.resize(stack_.size() - count);
  return push(tuple);
}

bool pickle_machine::append_from(size_t first, kind expected) {
  if (first < floor() + 1)
    return too_few();
  auto container = stack_[first - 1];
  if (container.type != expected)
    return refuse(expected == kind::map ? "SETITEM needs a dictionary below its entries"
                                        : "APPEND needs a list below its entries");
  if (expected == kind::map && (stack_.size() - first) % 2 != 0)
    return refuse("SETITEMS needs a value for each key");
  result_.tree.append(container, std::span{stack_}.subspan(first));
  stack_.resize(first);
  return true;
}

bool pickle_machine::store(uint64_t slot) {
  if (lacks(1))
    return too_few();
  if (slot > memo_.size())
    return refuse(fmt::format("memo slot {} comes before slot {}", slot, memo_.size()));
  if (slot == memo_.size())
    memo_.push_back(stack_.back());
  else
    memo_[slot] = stack_.back();
  return true;
}

bool pickle_machine::recall(uint64_t slot) {
  return slot < memo_.size() ? push(memo_[slot]) : refuse(fmt::format("memo slot {} has no value", slot));
}

bool pickle_machine::step_number(uint8_t opcode) {
  switch (opcode) {
    case 'K': return has(1) ? push(dump_value::of(int64_t{take<uint8_t>()})) : cut();
    case 'M': return has(2) ? push(dump_value::of(int64_t{take<uint16_t>()})) : cut();
    case 'J': return has(4) ? push(dump_value::of(int64_t{take<int32_t>()})) : cut();
    case 0x8a: return has(1) ? push_long(take<uint8_t>()) : cut();
    case 0x8b: return has(4) ? push_long(take<uint32_t>()) : cut();
    case 'G': {
      if (!has(8))
        return cut();
      return push(dump_value::of(std::bit_cast<double>(__builtin_bswap64(take<uint64_t>()))));
    }
    case 'N': return push({});
    case 0x88: return push(dump_value::of(true));
    case 0x89: return push(dump_value::of(false));
    default: return push_line(opcode); // I, L, F
  }
}

bool pickle_machine::step_text(uint8_t opcode) {
  switch (opcode) {
    case 0x8c: // SHORT_BINUNICODE
    case 'U':
    case 'C': return has(1) ? push_text(take<uint8_t>()) : cut();
    case 'X': // BINUNICODE
    case 'T':
    case 'B': return has(4) ? push_text(take<uint32_t>()) : cut();
    case 0x8d: // BINUNICODE8
    case 0x8e: return has(8) ? push_text(take<uint64_t>()) : cut();
    default: return push_line(opcode); // V, S
  }
}

bool pickle_machine::step_memo(uint8_t opcode) {
  switch (opcode) {
    case 'q': return has(1) ? store(take<uint8_t>()) : cut();
    case 'r': return has(4) ? store(take<uint32_t>()) : cut();
    case 0x94: return store(memo_.size());
    case 'h': return has(1) ? recall(take<uint8_t>()) : cut();
    case 'j': return has(4) ? recall(take<uint32_t>()) : cut();
    default: break;
  }
  auto line = take_line(); // PUT and GET of protocol 0
  if (!line)
    return cut();
  uint64_t slot = 0;
  auto [end, problem] = std::from_chars(line->data(), line->data() + line->size(), slot);
  if (problem != std::errc{} || end != line->data() + line->size())
    return refuse("this is not the number of a memo slot");
  return opcode == 'p' ? store(slot) : recall(slot);
}

bool pickle_machine::step_container(uint8_t opcode) {
  switch (opcode) {
    case '}': return push(result_.tree.add_container(kind::map));
    case ']':
    case ')': return push(result_.tree.add_container(kind::list));
    case 0x85: return make_tuple(1);
    case 0x86: return make_tuple(2);
    case 0x87: return make_tuple(3);
    case 'a': return lacks(2) ? too_few() : append_from(stack_.size() - 1, kind::list);
    case 's': return lacks(3) ? too_few() : append_from(stack_.size() - 2, kind::map);
    default: break;
  }
  auto first = pop_mark();
  if (!first)
    return no_mark();
  switch (opcode) {
    case 'e': return append_from(*first, kind::list);
    case 'u': return append_from(*first, kind::map);
    case 'd': {
      auto entries = std::span{stack_}.subspan(*first);
      if (entries.size() % 2 != 0)
        return refuse("DICT needs a value for each key");
      auto map = result_.tree.add_container(kind::map);
      result_.tree.append(map, entries);
      stack_.resize(*first);
      return push(map);
    }
    default: return make_tuple(stack_.size() - *first); // t, l
  }
}

bool pickle_machine::step_other(uint8_t opcode) {
  switch (opcode) {
    case 0x80: // PROTO
      if (!has(1))
        return cut();
      if (auto version = take<uint8_t>(); version > 5)
        return refuse(fmt::format("pickle protocol {}; 0 to 5 are known", version));
      return true;
    case 0x95: // FRAME
      if (!has(8))
        return cut();
      if (auto length = take<uint64_t>(); !has(length))
        return refuse(fmt::format("a frame of {} bytes, but the file has {} more: it is cut off", length,
                                  bytes_.size() - at_));
      return true;
    case '(': marks_.push_back(stack_.size()); return true;
    case '0':
      if (lacks(1))
        return too_few();
      stack_.pop_back();
      return true;
    case '1': {
      auto first = pop_mark();
      if (!first)
        return no_mark();
      stack_.resize(*first);
      return true;
    }
    case '2': return lacks(1) ? too_few() : push(stack_.back());
    default: break;
  }
  if (auto name = forbidden(opcode); !name.empty())
    return refuse(fmt::format("the opcode {} would name, call or build an object; a Flight Recorder dump has only "
                              "plain values, so this file is another pickle",
                              name));
  return refuse(fmt::format("0x{:02x} is no opcode of a dump's values", opcode));
}

bool pickle_machine::step(uint8_t opcode) {
  switch (opcode) {
    case 'h':
    case 'j':
    case 'q':
    case 'r':
    case 0x94:
    case 'p':
    case 'g': return step_memo(opcode);
    case 'K':
    case 'M':
    case 'J':
    case 'N':
    case 0x88:
    case 0x89:
    case 0x8a:
    case 0x8b:
    case 'G':
    case 'I':
    case 'L':
    case 'F': return step_number(opcode);
    case 'X':
    case 0x8c:
    case 0x8d:
    case 0x8e:
    case 'U':
    case 'T':
    case 'B':
    case 'C':
    case 'V':
    case 'S': return step_text(opcode);
    case '}':
    case ']':
    case ')':
    case 0x85:
    case 0x86:
    case 0x87:
    case 'a':
    case 's':
    case 'e':
    case 'u':
    case 'd':
    case 't':
    case 'l': return step_container(opcode);
    default: return step_other(opcode);
  }
}

caf::expected<parsed_dump> pickle_machine::run() {
  while (at_ < bytes_.size()) {
    opcode_at_ = at_;
    auto opcode = static_cast<uint8_t>(bytes_[at_++]);
    if (opcode == '.') {
      if (stack_.size() != 1 || !marks_.empty())
        return at_opcode(fmt::format("the pickle ends with {} values; a dump is one", stack_.size()));
      result_.root = stack_.front();
      result_.bytes = bytes_.size();
      return std::move(result_);
    }
    if (!step(opcode))
      return std::move(error_);
  }
  return malformed(fmt::format("byte {}: the file ends without the opcode STOP: it is cut off, or was still being "
                               "written",
                               bytes_.size()));
}

} // namespace

caf::expected<parsed_dump> parse_pickle(std::string_view bytes) {
  return pickle_machine{bytes}.run();
}

} // namespace ringmaster::diagnosis
