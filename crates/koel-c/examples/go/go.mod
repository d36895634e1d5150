module example.org/koel

go 1.19
