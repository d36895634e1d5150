package koel_test

import (
	"errors"
	"fmt"

	"example.org/koel"
)

func Example() {
	seen, err := koel.New(1000, 0.001, koel.Options{})
	if err != nil {
		panic(err)
	}
	defer seen.Close()
	added, _ := seen.AddString("ada")
	again, _ := seen.Add([]byte("ada"))
	found, _ := seen.ContainsMany([][]byte{[]byte("ada"), []byte("mary")})
	fmt.Println(added, again, found)

	_, err = koel.New(1000, 2, koel.Options{})
	var failed *koel.Error
	fmt.Println(errors.As(err, &failed) && failed.Code == koel.Settings)
	fmt.Println(err)
	// Output:
	// true false [true false]
	// true
	// koel: a false-positive rate of 2e0 cannot be built; give one above 0 and below 1, such as 0.001
}
