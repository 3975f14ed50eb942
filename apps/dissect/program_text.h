#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"

// Names of programs, procedures and operations of the NFS family, and their main arguments and results in words.
namespace weft::apps::dissect {

// procedure_name: "NFSv3 READ", "MOUNTv3 MNT"; "program 395183 version 1 procedure 7" without a known name.
std::string procedure_name(std::uint32_t program, std::uint32_t version, std::uint32_t procedure);

// argument_text and result_text follow the name. They begin with a blank, or are empty. reduced: as of
// nfsulb::walk_arguments and nfsulb::walk_results. Octets that are not what the procedure says end the text.
std::string argument_text(std::uint32_t program, std::uint32_t version, std::uint32_t procedure, ConstBytes args,
                          std::span<const std::size_t> reduced);
std::string result_text(std::uint32_t program, std::uint32_t version, std::uint32_t procedure, ConstBytes results,
                        std::span<const std::uint32_t> reduced);

}  // namespace weft::apps::dissect
