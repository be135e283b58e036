// Regular expressions of files of others, matched in time that grows with the name and not with the paths through the
// expression.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/artifact/linear_pattern.h"

#include <algorithm>
#include <memory>
#include <optional>

namespace ortc::engine {

/// A recursive descent over the text that builds the automaton from its end: each part is given the state after it.
class LinearPattern::Parser {
public:
  Parser(std::string_view text, LinearPattern &pattern) : text(text), pattern(pattern) {}

  std::string run() {
    std::optional<Node> node = readAlternatives();
    if (node && at < text.size())
      fail("a ')' without its '('");
    if (why.empty()) {
      uint32_t end = add({State::End, 0, 0, 0});
      pattern.first = build(*node, end);
    }
    return why;
  }

private:
  /// The meaning of the text; `parts` are in order, or alternatives.
  struct Node {
    enum Kind { Set, Sequence, Alternatives, Repeat, AtBegin, AtEnd } kind = Sequence;
    Bytes set;
    std::vector<Node> parts;
    int least = 0, most = 0; ///< of a Repeat; `most`: -1 has no end
  };
  static constexpr int kDeepest = 100, kMostTimes = 1000;

  std::nullopt_t fail(std::string text) {
    if (why.empty())
      why = std::move(text);
    return std::nullopt;
  }
  bool take(char c) {
    if (at == text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }

  std::optional<Node> readAlternatives() {
    if (++depth > kDeepest)
      return fail("groups within groups, more than " + std::to_string(kDeepest));
    Node node{Node::Alternatives, {}, {}, 0, 0};
    do {
      Node sequence;
      while (at < text.size() && text[at] != '|' && text[at] != ')') {
        std::optional<Node> part = readRepeated();
        if (!part)
          return std::nullopt;
        sequence.parts.push_back(std::move(*part));
      }
      node.parts.push_back(std::move(sequence));
    } while (take('|'));
    --depth;
    return node;
  }

  std::optional<Node> readRepeated() {
    std::optional<Node> part = readPart();
    if (!part)
      return part;
    int least = 0, most = -1;
    if (take('*')) {
    } else if (take('+')) {
      least = 1;
    } else if (take('?')) {
      most = 1;
    } else if (take('{')) {
      std::optional<int> from = readNumber();
      std::optional<int> to = from;
      if (take(','))
        to = at < text.size() && text[at] == '}' ? std::optional<int>(-1) : readNumber();
      if (!from || !to || !take('}') || (*to >= 0 && *to < *from))
        return fail("a '{' that is no {m,n} of numbers up to " + std::to_string(kMostTimes));
      least = *from, most = *to;
    } else {
      return part;
    }
    take('?'); // as few as possible: the same names match
    if (at < text.size() && (text[at] == '*' || text[at] == '+' || text[at] == '?' || text[at] == '{'))
      return fail("two repetitions in a row");
    Node node{Node::Repeat, {}, {}, least, most};
    node.parts.push_back(std::move(*part));
    return node;
  }

  std::optional<int> readNumber() {
    int number = -1;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
      if ((number = std::max(number, 0) * 10 + (text[at] - '0')) > kMostTimes)
        return std::nullopt;
    return number < 0 ? std::nullopt : std::optional<int>(number);
  }

  std::optional<Node> readPart() {
    Node node{Node::Set, {}, {}, 0, 0};
    char c = text[at++];
    switch (c) {
    case '(':
      if (take('?') && !take(':'))
        return fail("a '(?' that is no '(?:'");
      {
        std::optional<Node> group = readAlternatives();
        if (group && !take(')'))
          return fail("a '(' without its ')'");
        return group;
      }
    case '[':
      return readClass();
    case '\\': {
      std::optional<Bytes> set = readEscape();
      if (!set)
        return std::nullopt;
      node.set = *set;
      return node;
    }
    case '.':
      node.set.set().reset('\n');
      return node;
    case '*':
    case '+':
    case '?':
    case '{':
      return fail(std::string("a '") + c + "' that repeats nothing");
    case '^':
    case '$':
      node.kind = c == '^' ? Node::AtBegin : Node::AtEnd;
      return node;
    default:
      node.set.set(static_cast<unsigned char>(c));
      return node;
    }
  }

  static Bytes range(unsigned char from, unsigned char to) {
    Bytes set;
    for (int c = from; c <= to; ++c)
      set.set(size_t(c));
    return set;
  }

  std::optional<Bytes> readEscape() {
    if (at == text.size())
      return fail("a '\\' at the end");
    auto c = static_cast<unsigned char>(text[at++]);
    const Bytes digits = range('0', '9'),
                words = digits | range('a', 'z') | range('A', 'Z') | range('_', '_'),
                spaces = range('\t', '\r') | range(' ', ' ');
    switch (c) {
    case 'd':
      return digits;
    case 'D':
      return ~digits;
    case 'w':
      return words;
    case 'W':
      return ~words;
    case 's':
      return spaces;
    case 'S':
      return ~spaces;
    default:
      if (words[c])
        return fail(std::string("an escape '\\") + char(c) + "'");
      return range(c, c);
    }
  }

  std::optional<Node> readClass() {
    Node node{Node::Set, {}, {}, 0, 0};
    const bool isOther = take('^');
    for (bool isFirst = true; at < text.size() && (isFirst || text[at] != ']'); isFirst = false) {
      auto from = static_cast<unsigned char>(text[at++]);
      if (from >= 0x80)
        return fail("a character beyond ASCII in '[...]'");
      if (from == '\\') {
        std::optional<Bytes> set = readEscape();
        if (!set)
          return std::nullopt;
        node.set |= *set;
        continue;
      }
      unsigned char to = from;
      if (at + 1 < text.size() && text[at] == '-' && text[at + 1] != ']') {
        to = static_cast<unsigned char>(text[at + 1]);
        at += 2;
        if (to < from || to >= 0x80 || to == '\\')
          return fail("a range in '[...]' that has no order");
      }
      node.set |= range(from, to);
    }
    if (!take(']'))
      return fail("a '[' without its ']'");
    if (isOther)
      node.set.flip();
    return node;
  }

  uint32_t add(State state) {
    if (pattern.states.size() < kMostStates)
      pattern.states.push_back(state);
    else
      fail("more than " + std::to_string(kMostStates) + " states");
    return uint32_t(pattern.states.size() - 1);
  }

  /// The state with which a node begins that `next` follows.
  uint32_t build(const Node &node, uint32_t next) {
    if (!why.empty())
      return next;
    switch (node.kind) {
    case Node::Set:
      pattern.sets.push_back(node.set);
      return add({State::Byte, uint32_t(pattern.sets.size() - 1), next, 0});
    case Node::Sequence:
      for (auto part = node.parts.rbegin(); part != node.parts.rend(); ++part)
        next = build(*part, next);
      return next;
    case Node::Alternatives: {
      uint32_t begin = build(node.parts.back(), next);
      for (size_t i = node.parts.size() - 1; i-- > 0;)
        begin = add({State::Fork, 0, build(node.parts[i], next), begin});
      return begin;
    }
    case Node::AtBegin:
      return add({State::AtBegin, 0, next, 0});
    case Node::AtEnd:
      return add({State::AtEnd, 0, next, 0});
    case Node::Repeat:
      break;
    }
    const Node &part = node.parts.front();
    if (node.most < 0) {
      uint32_t fork = add({State::Fork, 0, next, next});
      uint32_t begin = build(part, fork);
      pattern.states[fork].next = begin;
      next = fork;
    } else {
      const uint32_t end = next;
      for (int i = node.least; i < node.most && why.empty(); ++i)
        next = add({State::Fork, 0, build(part, next), end});
    }
    for (int i = 0; i < node.least && why.empty(); ++i)
      next = build(part, next);
    return next;
  }

  std::string_view text;
  LinearPattern &pattern;
  size_t at = 0;
  int depth = 0;
  std::string why;
};

bool LinearPattern::parse(std::string_view text, std::string &why) {
  states.clear();
  sets.clear();
  why = Parser(text, *this).run();
  return why.empty();
}

/// Puts a state among the active ones, or those that it leads to without a byte.
void LinearPattern::enter(Front &front, uint32_t state) const {
  std::vector<uint32_t> waiting{state};
  while (!waiting.empty()) {
    const uint32_t each = waiting.back();
    waiting.pop_back();
    if (front.seen[each] == front.number)
      continue;
    front.seen[each] = front.number;
    const State &is = states[each];
    if (is.kind == State::Byte || is.kind == State::End)
      front.active.push_back(each);
    if (is.kind == State::Fork)
      waiting.push_back(is.other);
    if (is.kind == State::Fork || (is.kind == State::AtBegin && front.at == 0) ||
        (is.kind == State::AtEnd && front.at == front.size))
      waiting.push_back(is.next);
  }
}

bool LinearPattern::matchesEnd(std::string_view name) const {
  Front front;
  front.size = name.size();
  front.seen.resize(states.size());
  enter(front, first);
  for (char c : name) {
    std::vector<uint32_t> before;
    before.swap(front.active);
    ++front.number;
    ++front.at;
    for (uint32_t each : before)
      if (states[each].kind == State::Byte && sets[states[each].set][static_cast<unsigned char>(c)])
        enter(front, states[each].next);
    if (c == '.')
      enter(front, first);
  }
  return std::any_of(front.active.begin(), front.active.end(),
                     [&](uint32_t each) { return states[each].kind == State::End; });
}

} // namespace ortc::engine
