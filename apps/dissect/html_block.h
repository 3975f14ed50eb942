#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apps/dissect/frame.h"

namespace weft::apps::dissect {

// html_json gives JSON that may stand in a script element: ASCII alone, and no "<" that could end the element or begin
// a comment.
std::string html_json(const nlohmann::ordered_json& json);

// HtmlBlock: some messages as two JSON texts for the page of --html. `list` has what the page needs of every message:
// a column for each property. `details` has the fields and octets, which the page reads when the user asks for them.
// README.md describes both. A value without I/O; its owner bounds it with size().
class HtmlBlock {
 public:
  // Octets that are kept of each message: of a tagged segment, whose octets are mostly payload, and of others.
  static constexpr std::size_t kTaggedOctets = 96;
  static constexpr std::size_t kOtherOctets = 768;
  static constexpr std::size_t kMaxText = 1024;    // octets of a line or a value
  static constexpr std::size_t kMaxFields = 256;   // of a message
  static constexpr std::size_t kMaxFindings = 16;  // of a message
  static constexpr std::size_t kMaxStags = 64;     // of a message

  void add_connection(const Connection& connection);
  void add_end(std::uint32_t connection, const TcpCounters& counters);
  void add_message(const Frame& frame);

  // About the octets of both texts so far.
  std::size_t size() const { return size_ + list_strings_.size() + detail_strings_.size() + shapes_.size(); }
  std::size_t num_messages() const { return time_.size(); }
  bool empty() const { return size() == 0; }

  // Texts of html_json.
  std::string list() const;
  std::string details() const;

 private:
  using Json = nlohmann::ordered_json;

  // Strings: each text once, in the order of the first use.
  class Strings {
   public:
    std::size_t index_of(std::string_view text);
    const Json& texts() const { return texts_; }
    std::size_t size() const { return size_; }  // about the octets of the texts

   private:
    std::size_t size_ = 0;
    Json texts_ = Json::array();
    std::unordered_map<std::string, std::size_t> indices_;
  };

  void add_lines(const Frame& frame);
  void add_findings(const Frame& frame);
  void add_details(const Frame& frame);
  Json layer_details(const Layer& layer, std::size_t& num_fields);

  std::size_t size_ = 0;
  Timestamp last_{};  // the time of the last message
  Json connections_ = Json::array(), ends_ = Json::array();
  // Columns of the list.
  Json time_ = Json::array(), packet_ = Json::array(), connection_ = Json::array(), flags_ = Json::array();
  Json layers_ = Json::array(), lines_ = Json::array(), operation_ = Json::array(), procedure_ = Json::array();
  Json wire_octets_ = Json::array(), octets_ = Json::array(), segments_ = Json::array();
  Json xid_ = Json::array(), credits_ = Json::array(), latency_ = Json::array();
  // Lists of the few messages that have the property.
  Json stags_ = Json::array(), findings_ = Json::array();
  Strings list_strings_;
  // Details.
  Json messages_ = Json::array();
  Strings detail_strings_, shapes_;
};

}  // namespace weft::apps::dissect
