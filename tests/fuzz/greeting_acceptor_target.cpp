// What is sent to a port before anything is proved: runtime/trust/greeting.hpp.
#include "runtime/invariants/ensure.hpp"
#include "runtime/trust/greeting.hpp"
#include "runtime/trust/secret.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace ringmaster::fuzz {

namespace {

/// The first byte: which port it is, whether it has a secret, and in how large pieces the rest comes.
void greet_acceptor(std::string_view bytes) {
  input_parts parts{bytes};
  const auto choice = parts.byte();
  const auto kind = static_cast<listener_kind>(choice % 3);
  static const auto with_secret = credentials::of(
    {role::member, {}, *shared_secret::parse("a secret of the corpus, of 32 bytes", "the corpus")}, "the corpus");
  greeting_acceptor acceptor{(choice & 4) != 0 ? with_secret : no_credentials(), kind, greeting_nonce{}};
  auto left = as_bytes(parts.rest());
  const size_t piece_max = (choice >> 3) + 1;
  while (!left.empty()) {
    const auto piece = left.first(std::min({left.size(), piece_max, acceptor.wanted()}));
    left = left.subspan(piece.size());
    const auto step = acceptor.take(piece);
    if (const auto* refused = std::get_if<greeting_acceptor::refused>(&step)) {
      ensure(!text_of(refused->why).empty(), "a refusal has a reason");
      return;
    }
    if (std::holds_alternative<greeting_acceptor::admitted>(step))
      return;
    ensure(acceptor.wanted() > 0, "a greeting that is not over wants more");
  }
}

const fuzz_target fuzz_greeting_acceptor{"greeting_acceptor", greet_acceptor};

} // namespace

} // namespace ringmaster::fuzz
