// What answers where this process connects to.
#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/trust/greeting.hpp"
#include "runtime/trust/secret.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace ringmaster::fuzz {

namespace {

/// The first byte: what it connects to, whether it has a secret, and in how large pieces the rest comes.
void greet_initiator(std::string_view bytes) {
  input_parts parts{bytes};
  const auto choice = parts.byte();
  const auto kind = static_cast<listener_kind>(choice % 3);
  static const auto with_secret = credentials::of(
    {role::member, {}, *shared_secret::parse("a secret of the corpus, of 32 bytes", "the corpus")}, "the corpus");
  const auto own = (choice & 4) != 0 ? with_secret : no_credentials();
  greeting_initiator initiator{[own] { return caf::expected<credentials_ptr>{own}; }, kind, "host:1", greeting_nonce{}};
  auto left = as_bytes(parts.rest());
  const size_t piece_max = (choice >> 3) + 1;
  while (!left.empty()) {
    const auto piece = left.first(std::min({left.size(), piece_max, initiator.wanted()}));
    left = left.subspan(piece.size());
    const auto step = initiator.take(piece);
    if (const auto* failed = std::get_if<greeting_initiator::failed>(&step)) {
      ensure(failed->why && !render(failed->why).empty(), "a greeting fails for a reason");
      return;
    }
    if (std::holds_alternative<greeting_initiator::admitted>(step))
      return;
    ensure(initiator.wanted() > 0, "a greeting that is not over wants more");
  }
  ensure(static_cast<bool>(initiator.cut_short()), "a connection that was closed has a reason");
}

const fuzz_target fuzz_greeting_initiator{"greeting_initiator", greet_initiator};

} // namespace

} // namespace ringmaster::fuzz
