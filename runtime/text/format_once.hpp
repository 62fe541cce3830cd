#pragma once

#include <fmt/format.h>

// {fmt} 9 would compile its formatting code again in every file that formats into its own buffer (spdlog,
// fmt::format_to). Precompiled headers include this file; no source does.
extern template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view, fmt::format_args,
                                                   fmt::detail::locale_ref);
