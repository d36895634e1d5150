// Keys for the picture: short words, so that they fit into a slot.

const BIRDS =
  "wren robin heron crane stork finch raven eagle swift owl lark crow swan duck goose gull tern rook " +
  "dove kite hawk teal ibis emu kiwi loon coot rail ruff knot skua shag auk puffin plover curlew snipe " +
  "dunlin avocet bittern egret osprey merlin hobby falcon harrier buzzard kestrel quail grouse pheasant " +
  "turkey pigeon parrot macaw toucan hornbill hoopoe roller shrike oriole jay magpie tit pipit wagtail " +
  "dipper starling thrush ouzel redwing siskin linnet serin bunting sparrow weaver martin swallow";
const BEASTS =
  "fox wolf bear lynx otter badger stoat weasel mink marten polecat ferret hare rabbit squirrel beaver " +
  "mouse vole shrew mole bat hedgehog deer elk moose bison goat sheep ibex boar horse donkey zebra tapir " +
  "rhino hippo giraffe okapi camel llama alpaca lion tiger leopard puma ocelot cheetah hyena jackal dingo " +
  "panda koala wombat possum lemur gibbon baboon gorilla seal walrus whale dolphin";

/** The key number `number` that is added: a bird, and from then on a bird with a number. */
export function bird(number) {
  const birds = BIRDS.split(" ");
  const turn = Math.floor(number / birds.length);
  return birds[number % birds.length] + (turn ? ` ${turn + 1}` : "");
}

/** Keys that nothing adds by itself. */
export function* beasts() {
  yield* BEASTS.split(" ");
  for (let number = 2; number < 100_000; number += 1) yield `fox ${number}`;
}
