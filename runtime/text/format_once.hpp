#pragma once

#include <fmt/format.h>

// The formatting itself, which {fmt} 9 would compile once more in every file that formats into a buffer of its own:
// spdlog's messages, fmt::format_to. Precompiled headers bring this to them: no source includes it.
extern template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view, fmt::format_args,
                                                   fmt::detail::locale_ref);
