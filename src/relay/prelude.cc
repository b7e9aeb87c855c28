// SPDX-License-Identifier: Apache-2.0
#include "relay/prelude.h"

#include <string>

#include "relay/text.h"

namespace tilewright::relay {
namespace {

constexpr std::string_view kText = R"(
type List[A] {
  Cons(A, List[A]),
  Nil,
}
type Option[A] {
  Some(A),
  None,
}
type Tree[A] {
  Rose(A, List[Tree[A]]),
}

def @id[A](%x: A) -> A { %x }
def @compose[A, B, C](%f: fn (B) -> C, %g: fn (A) -> B) -> fn (A) -> C {
  fn (%x: A) -> C { %f(%g(%x)) }
}
def @flip[A, B, C](%f: fn (A, B) -> C) -> fn (B, A) -> C {
  fn (%b: B, %a: A) -> C { %f(%a, %b) }
}

// The first element, and the rest; of no list without elements.
def @hd[A](%xs: List[A]) -> A { match? (%xs) { Cons(%x, _) => %x } }
def @tl[A](%xs: List[A]) -> List[A] { match? (%xs) { Cons(_, %rest) => %rest } }
def @nth[A](%xs: List[A], %n: int32) -> A {
  if (%n == 0) { @hd(%xs) } else { @nth(@tl(%xs), %n - 1) }
}
def @length[A](%xs: List[A]) -> int32 {
  match (%xs) { Cons(_, %rest) => 1 + @length(%rest), Nil => 0 }
}
def @update[A](%xs: List[A], %n: int32, %v: A) -> List[A] {
  if (%n == 0) { Cons(%v, @tl(%xs)) } else { Cons(@hd(%xs), @update(@tl(%xs), %n - 1, %v)) }
}

def @map[A, B](%f: fn (A) -> B, %xs: List[A]) -> List[B] {
  match (%xs) { Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)), Nil => Nil }
}
def @foldl[A, B](%f: fn (A, B) -> A, %acc: A, %xs: List[B]) -> A {
  match (%xs) { Cons(%x, %rest) => @foldl(%f, %f(%acc, %x), %rest), Nil => %acc }
}
def @foldr[A, B](%f: fn (A, B) -> B, %acc: B, %xs: List[A]) -> B {
  match (%xs) { Cons(%x, %rest) => %f(%x, @foldr(%f, %acc, %rest)), Nil => %acc }
}
def @foldr1[A](%f: fn (A, A) -> A, %xs: List[A]) -> A {
  match? (%xs) { Cons(%x, Nil) => %x, Cons(%x, %rest) => %f(%x, @foldr1(%f, %rest)) }
}
def @sum(%xs: List[int32]) -> int32 {
  @foldl(fn (%a: int32, %b: int32) -> int32 { %a + %b }, 0, %xs)
}
def @concat[A](%xs: List[A], %ys: List[A]) -> List[A] {
  match (%xs) { Cons(%x, %rest) => Cons(%x, @concat(%rest, %ys)), Nil => %ys }
}
def @filter[A](%keep: fn (A) -> bool, %xs: List[A]) -> List[A] {
  match (%xs) {
    Cons(%x, %rest) => { if (%keep(%x)) { Cons(%x, @filter(%keep, %rest)) } else { @filter(%keep, %rest) } },
    Nil => Nil,
  }
}
def @zip[A, B](%xs: List[A], %ys: List[B]) -> List[(A, B)] {
  match (%xs) {
    Cons(%x, %xs_rest) => { match (%ys) { Cons(%y, %ys_rest) => Cons((%x, %y), @zip(%xs_rest, %ys_rest)), Nil => Nil } },
    Nil => Nil,
  }
}
def @rev_onto[A](%done: List[A], %xs: List[A]) -> List[A] {
  match (%xs) { Cons(%x, %rest) => @rev_onto(Cons(%x, %done), %rest), Nil => %done }
}
def @rev[A](%xs: List[A]) -> List[A] { @rev_onto(Nil, %xs) }

// A map that hands a state along, from the right and from the left.
def @map_accumr[A, B, C](%f: fn (A, B) -> (A, C), %state: A, %xs: List[B]) -> (A, List[C]) {
  match (%xs) {
    Cons(%x, %rest) => {
      let %later = @map_accumr(%f, %state, %rest);
      let %now = %f(%later.0, %x);
      (%now.0, Cons(%now.1, %later.1))
    },
    Nil => (%state, Nil),
  }
}
def @map_accuml_onto[A, B, C](%f: fn (A, B) -> (A, C), %state: A, %xs: List[B], %done: List[C]) -> (A, List[C]) {
  match (%xs) {
    Cons(%x, %rest) => {
      let %now = %f(%state, %x);
      @map_accuml_onto(%f, %now.0, %rest, Cons(%now.1, %done))
    },
    Nil => (%state, %done),
  }
}
def @map_accuml[A, B, C](%f: fn (A, B) -> (A, C), %state: A, %xs: List[B]) -> (A, List[C]) {
  @map_accuml_onto(%f, %state, %xs, Nil)
}
def @unfoldr[A, B](%f: fn (A) -> Option[(A, B)], %seed: A) -> List[B] {
  match (%f(%seed)) { Some((%next, %x)) => Cons(%x, @unfoldr(%f, %next)), None => Nil }
}
def @unfoldl_onto[A, B](%f: fn (A) -> Option[(A, B)], %seed: A, %done: List[B]) -> List[B] {
  match (%f(%seed)) { Some((%next, %x)) => @unfoldl_onto(%f, %next, Cons(%x, %done)), None => %done }
}
def @unfoldl[A, B](%f: fn (A) -> Option[(A, B)], %seed: A) -> List[B] { @unfoldl_onto(%f, %seed, Nil) }

def @tmap[A, B](%f: fn (A) -> B, %t: Tree[A]) -> Tree[B] {
  match (%t) { Rose(%x, %kids) => Rose(%f(%x), @map(fn (%kid: Tree[A]) -> Tree[B] { @tmap(%f, %kid) }, %kids)) }
}
def @size[A](%t: Tree[A]) -> int32 {
  match (%t) { Rose(_, %kids) => 1 + @sum(@map(fn (%kid: Tree[A]) -> int32 { @size(%kid) }, %kids)) }
}
// f after itself, n times.
def @iterate[A](%f: fn (A) -> A, %n: int32) -> fn (A) -> A {
  if (%n == 0) { fn (%x: A) -> A { %x } } else { @compose(%f, @iterate(%f, %n - 1)) }
}
)";

}  // namespace

std::string_view prelude_text() { return kText; }

Result<Module> with_prelude(const Module& module) {
  ParseOptions options;
  options.origin = "prelude";
  Module prelude = TW_TRY(parse_module("#[version = \"0.0.5\"]\n" + std::string(kText), {}, options));
  Module out = module;
  out.types.insert(prelude.types.begin(), prelude.types.end());
  out.functions.insert(prelude.functions.begin(), prelude.functions.end());
  return out;
}

}  // namespace tilewright::relay
