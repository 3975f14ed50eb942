#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Reads the vector file of RPC-over-RDMA version 1.
namespace weft::rpcrdma::testing {

// Vector: one record of the file.
struct Vector {
  std::string id;  // "V01", "P01", "M01"
  std::string title;
  std::vector<std::uint8_t> octets;  // hex
  std::size_t header_len = 0;
  std::string to;  // malformed ones: "responder" or "requester"
  std::string expect;
  std::vector<std::uint8_t> answer;
};

std::vector<std::uint8_t> from_hex(const std::string& hex);
std::string to_hex(const std::vector<std::uint8_t>& octets);
// All records whose id begins with `kind`, in order; empty where the file is missing.
std::vector<Vector> load_vectors(char kind);
// The vector with this id. Its octets are empty where the file has none.
Vector load_vector(const std::string& id);

}  // namespace weft::rpcrdma::testing
