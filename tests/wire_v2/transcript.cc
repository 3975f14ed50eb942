#include "tests/wire_v2/transcript.h"

#include <algorithm>
#include <set>

#include "tests/wire_v1/decoder.h"
#include "tests/wire_v2/decoder.h"
#include "tests/wire_v2/glance.h"
#include "tests/wire_v2/tables.h"

namespace weft::wire_v2 {
namespace {

using Posts = std::vector<const Post*>;

bool is_message(const Post& post) {
  return post.kind == Post::Kind::kSend || post.kind == Post::Kind::kArrival;
}

std::optional<Profile> profile_of(const Posts& posts) {
  for (const Post* post : posts) {
    if (!is_message(*post)) continue;
    if (const auto draft = draft_of(post->octets)) return draft;
  }
  return {};
}

// A connection whose first message is of version 1 has that version.
bool is_version_1(const Posts& posts) {
  const auto first = std::ranges::find_if(posts, [](const Post* post) { return is_message(*post); });
  return first != posts.end() && version_of((*first)->octets) == 1;
}

class Judge {
 public:
  explicit Judge(Transcript::Verdict& verdict) : verdict_(verdict) {}

  void on_connection(const Posts& posts, std::size_t client) {
    const Opened opened = judge_probes(posts, client);
    on_conversation(opened.posts, client, opened.num_before);
  }

  void on_lone_end(const Posts& posts) {
    const Posts rest = judge_probes(posts, posts.front()->end).posts;
    const auto shown = profile_of(rest);
    one_by_one(rest, shown);
    if (shown) count_arrivals(rest, *shown);
  }

 private:
  struct Opened {
    Posts posts;
    std::uint32_t num_before = 0;  // probes that the server refused
  };
  // The client's last probe begins the conversation. The messages before it are judged one by one.
  Opened judge_probes(const Posts& posts, std::size_t client) {
    const auto is_asked = [client](const Post* post) {
      return post->end == client && post->kind == Post::Kind::kSend && is_probe(post->octets);
    };
    const auto last = std::find_if(posts.rbegin(), posts.rend(), is_asked);
    const auto begin = last == posts.rend() ? posts.begin() : std::prev(last.base());
    for (auto at = posts.begin(); at != begin; ++at) one_by_one({*at}, profile_of({*at}));
    return {Posts(begin, posts.end()), static_cast<std::uint32_t>(std::count_if(posts.begin(), begin, is_asked))};
  }

  // A server of the other draft refuses the first message in its own words, and nothing follows.
  static bool is_refused_elsewhere(const Posts& posts, std::size_t client, std::optional<Profile> shown) {
    if (!shown || posts.size() != 2 || posts.back()->end == client) return false;
    const Profile other = shown == Profile::kCel05 ? Profile::kWg07 : Profile::kCel05;
    return !is_allowed(posts.back()->octets, *shown) && is_allowed(posts.back()->octets, other);
  }

  void on_conversation(const Posts& posts, std::size_t client, std::uint32_t num_before) {
    if (is_version_1(posts)) return one_by_one(posts, {});
    const auto shown = profile_of(posts);
    if (is_refused_elsewhere(posts, client, shown)) {
      one_by_one({posts.front()}, shown);
      return one_by_one({posts.back()}, shown == Profile::kCel05 ? Profile::kWg07 : Profile::kCel05);
    }
    Conversation conversation(shown.value_or(Profile::kCel05), num_before);
    for (const Post* post : posts) hear(conversation, *post, post->end == client ? End::kClient : End::kServer);
    for (const Violation& violation : conversation.violations()) {
      add_fault(violation.rule, violation.text, posts.at(violation.event - 1)->octets);
    }
    for (const End end : {End::kClient, End::kServer}) {
      for (const std::uint32_t xid : conversation.unanswered(end)) {
        verdict_.unanswered.push_back((end == End::kClient ? "the client's Call " : "the server's Call ") +
                                      std::to_string(xid));
      }
    }
    verdict_.num_messages += static_cast<std::size_t>(
        std::ranges::count_if(posts, [](const Post* post) { return post->kind == Post::Kind::kSend; }));
    if (!shown) return;
    ++verdict_.num_conversations[*shown];
    verdict_.tally.add(conversation.tally());
  }

  static void hear(Conversation& conversation, const Post& post, End end) {
    switch (post.kind) {
      case Post::Kind::kSend: return conversation.send(end, post.octets, post.invalidated);
      case Post::Kind::kRead: return conversation.rdma_read(end, post.segment);
      case Post::Kind::kWrite: return conversation.rdma_write(end, post.segment);
      case Post::Kind::kArrival: return;  // not of paired ends
    }
  }

  void one_by_one(const Posts& posts, std::optional<Profile> shown) {
    for (const Post* post : posts) {
      if (post->kind != Post::Kind::kSend) continue;
      if (version_of(post->octets) == 1 && !(shown == Profile::kWg07 && is_mismatch(post->octets))) {
        on_version_1(post->octets);
      } else {
        on_version_2(post->octets, shown);
      }
    }
  }

  // These peers are the tests' own: only what they may send counts, and nothing is a fault.
  void count_arrivals(const Posts& posts, Profile shown) {
    for (const Post* post : posts) {
      if (post->kind != Post::Kind::kArrival) continue;
      const auto decoded = decode(post->octets, shown);
      if (const auto* message = std::get_if<Message>(&decoded)) verdict_.arrived.add(*message);
    }
  }

  void on_version_1(const Bytes& octets) {
    const auto decoded = wire_v1::decode(octets);
    if (const auto* fault = std::get_if<wire_v1::Fault>(&decoded)) add_fault("R1-5-01", fault->text, octets);
  }

  void on_version_2(const Bytes& octets, std::optional<Profile> shown) {
    const auto decoded = decode(octets, shown.value_or(Profile::kCel05));
    ++verdict_.num_messages;
    if (const auto* fault = std::get_if<Fault>(&decoded)) {
      add_fault(fault->rule, fault->text, octets);
    } else if (shown) {
      verdict_.tally.add(std::get<Message>(decoded));
    }
  }

  void add_fault(const std::string& rule, const std::string& text, const Bytes& octets) {
    verdict_.faults.push_back(rule + ": " + text + "\n" + hex(octets));
  }

  Transcript::Verdict& verdict_;
};

}  // namespace

Transcript::Verdict Transcript::judge() const {
  std::map<std::size_t, std::size_t> client_of;
  for (const auto& [client, server] : server_of_) client_of[server] = client;
  std::map<std::size_t, Posts> connections;  // by the client, or by the only end
  for (const Post& post : posts_) {
    const auto client = client_of.find(post.end);
    const bool is_paired = client != client_of.end() || server_of_.contains(post.end);
    if (is_paired && post.kind == Post::Kind::kArrival) continue;  // the test's own
    connections[client == client_of.end() ? post.end : client->second].push_back(&post);
  }
  Verdict verdict;
  Judge judge(verdict);
  for (const auto& [client, posts] : connections) {
    if (server_of_.contains(client)) {
      judge.on_connection(posts, client);
    } else {
      judge.on_lone_end(posts);
    }
  }
  return verdict;
}

}  // namespace weft::wire_v2
