// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title ParcelCourier
/// @notice Senders insure parcels with ether. A delivered parcel's insurance returns to the insurer that was named.
contract ParcelCourier {
    struct Parcel {
        address sender;
        address insurer;
        uint256 insured;
        bool settled;
    }

    uint256 public constant FEE = 0.01 ether;

    address public immutable courier;
    Parcel[] public parcels;
    uint256 public openInsurance;
    mapping(address => uint256) public claims;

    event Accepted(uint256 indexed id, address indexed sender, uint256 insured);
    event SettledParcel(uint256 indexed id);
    event Swept(uint256 amount);

    constructor() {
        courier = msg.sender;
    }

    /// @notice Hands a parcel over; what is sent beyond the fee insures it.
    function accept(address insurer) external payable returns (uint256 id) {
        require(msg.value >= FEE && insurer != address(0), "bad terms");
        id = parcels.length;
        parcels.push(Parcel(msg.sender, insurer, msg.value - FEE, false));
        openInsurance += msg.value - FEE;
        emit Accepted(id, msg.sender, msg.value - FEE);
    }

    /// @notice Confirms a delivery and returns the insurance.
    function settle(uint256 id) external {
        require(msg.sender == courier, "not courier");
        Parcel storage parcel = parcels[id];
        require(!parcel.settled, "already settled");
        parcel.settled = true;
        if (_forward(parcel.insurer, parcel.insured)) {
            openInsurance -= parcel.insured;
        } else {
            claims[parcel.insurer] += parcel.insured;
        }
        emit SettledParcel(id);
    }

    /// @notice Pays what could not be forwarded.
    function collectClaim() external {
        uint256 amount = claims[msg.sender];
        require(amount > 0, "no claim");
        claims[msg.sender] = 0;
        openInsurance -= amount;
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }

    /// @notice Pays the courier what belongs to no open parcel.
    function sweep() external {
        require(msg.sender == courier, "not courier");
        uint256 amount = address(this).balance - openInsurance;
        emit Swept(amount);
        (bool sent, ) = courier.call{value: amount}("");
        require(sent, "transfer failed");
    }

    function _forward(address to, uint256 amount) private returns (bool sent) {
        (sent, ) = to.call{value: amount, gas: 50_000}("");
    }
}
