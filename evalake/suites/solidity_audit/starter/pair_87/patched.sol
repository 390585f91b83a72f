// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title GuildLottery
/// @notice Players commit to numbers with a stake and reveal them; the combined numbers pick the winner of the pot.
contract GuildLottery {
    uint256 public constant TICKET = 0.1 ether;
    uint256 public constant STAKE = 1 ether;

    uint256 public immutable commitUntil;
    uint256 public immutable revealUntil;
    address[] public revealed;
    uint256 public committedCount;
    uint256 public mixed;
    uint256 public pot;
    bool public drawn;
    mapping(address => bytes32) public commitmentOf;
    mapping(address => uint256) public owed;

    event Committed(address indexed player);
    event Revealed(address indexed player, uint256 number);
    event Drawn(address indexed winner, uint256 pot);

    constructor(uint256 commitTime, uint256 revealTime) {
        commitUntil = block.timestamp + commitTime;
        revealUntil = commitUntil + revealTime;
    }

    /// @notice Enters with the hash of a number and a salt.
    function commit(bytes32 commitment) external payable {
        require(block.timestamp < commitUntil, "commits closed");
        require(commitmentOf[msg.sender] == bytes32(0) && commitment != bytes32(0), "cannot commit");
        require(msg.value == TICKET + STAKE, "wrong payment");
        commitmentOf[msg.sender] = commitment;
        committedCount += 1;
        pot += TICKET;
        emit Committed(msg.sender);
    }

    /// @notice Reveals the number that the caller has committed to.
    function reveal(uint256 number, bytes32 salt) external {
        require(block.timestamp >= commitUntil && block.timestamp < revealUntil, "not the time");
        require(commitmentOf[msg.sender] == keccak256(abi.encode(msg.sender, number, salt)), "wrong number");
        commitmentOf[msg.sender] = bytes32(uint256(1));
        mixed = uint256(keccak256(abi.encode(mixed ^ number)));
        revealed.push(msg.sender);
        owed[msg.sender] += STAKE;
        emit Revealed(msg.sender, number);
    }

    /// @notice Draws the winner among those who have revealed.
    function draw() external {
        require(block.timestamp >= revealUntil && !drawn && revealed.length > 0, "cannot draw");
        drawn = true;
        address winner = revealed[mixed % revealed.length];
        uint256 missing = committedCount - revealed.length;
        uint256 forfeited = (missing * STAKE) / revealed.length;
        for (uint256 i = 0; i < revealed.length; i++) {
            owed[revealed[i]] += forfeited;
        }
        owed[winner] += pot;
        emit Drawn(winner, pot);
    }

    function collect() external {
        require(drawn, "not drawn");
        uint256 amount = owed[msg.sender];
        require(amount > 0, "nothing owed");
        owed[msg.sender] = 0;
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
